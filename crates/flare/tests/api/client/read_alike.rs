//! Filters read patterns, dates and documents as other readers of CEL, RE2 and JSON do, where they deliver and where
//! they are tried.

use serde_json::json;

use crate::support::{Api, Story, document_url};

/// What `POST /filters/test` says of a document that is sent as it is written.
async fn tried(api: Api, filter: &str, document: &str) -> serde_json::Value {
    let body = format!("{{\"filter\":{},\"document\":{document}}}", json!(filter));
    api.send("POST", "/filters/test", &[], body).await.expect(200).json()
}

/// Which of the documents, sent as they are written, a client with this filter is told of.
async fn told(story: &Story, filter: &str, documents: &[&str]) -> Vec<usize> {
    let path = format!("/{}", story.receiver.count());
    let url = story.receiver.url(&path);
    let subscription = story.subscribe(json!({"endpoint": {"url": url}, "filter": filter})).await;
    let round = subscription.rsplit('/').next().unwrap();
    for (place, document) in documents.iter().enumerate() {
        let body = document.replacen('{', r#"{"rev":1,"#, 1);
        let put = format!("/documents/{}", document_url(format!("{round}-{place}")));
        story.api().send("PUT", &put, &[], body).await.expect(202);
    }
    story.settled(&subscription).await;
    story.api().delete(&subscription).await.expect(204);
    let requests = story.receiver.requests();
    let places = requests.iter().filter(|request| request.path == path);
    let mut places: Vec<usize> =
        places.map(|request| request.document().rsplit('-').next().unwrap().parse().unwrap()).collect();
    places.sort_unstable();
    places
}

#[tokio::test]
async fn a_pattern_in_a_filter_is_read_as_re2_reads_it() {
    let story = Story::begin().await;
    let names = [r#"{"name":"plain"}"#, r#"{"name":"Grüße"}"#, r#"{"name":"&"}"#, r#"{"name":"a.b"}"#];
    assert_eq!(told(&story, r"document.name.matches('^\\w+$')", &names).await, [0]);
    assert_eq!(told(&story, "document.name.matches('^[a&&b]$')", &names).await, [2]);
    assert_eq!(told(&story, r"document.name.matches('^\\Qa.b\\E$')", &names).await, [3]);
}

#[tokio::test]
async fn a_date_and_a_duration_become_text_in_a_filter() {
    let story = Story::begin().await;
    let documents = [r#"{"at":"2024-05-06T09:00:00+02:00"}"#, r#"{"at":"2024-05-06T09:00:00Z"}"#];
    let filter = "string(timestamp(document.at)) == '2024-05-06T07:00:00Z'";
    assert_eq!(told(&story, filter, &documents).await, [0]);
    assert_eq!(tried(story.api(), "string(duration('90m')) == '5400s'", "{}").await, json!({"result": true}));
}

#[tokio::test]
async fn a_document_with_a_value_nobody_can_read_is_still_filtered_by_its_others() {
    let story = Story::begin().await;
    let documents =
        [r#"{"price":3,"odd":1e400}"#, r#"{"price":3,"odd":"\ud800"}"#, r#"{"price":0,"odd":1e400}"#];
    assert_eq!(told(&story, "document.price > 0", &documents).await, [0, 1]);
    for document in documents {
        assert!(tried(story.api(), "has(document.odd)", document).await["result"].as_bool().unwrap());
        let failed = tried(story.api(), "document.odd == 1.0", document).await;
        assert!(failed["error"]["detail"].as_str().unwrap().contains("looked at"), "{failed}");
    }
}

#[tokio::test]
async fn delivery_and_the_test_of_a_filter_count_and_type_alike() {
    let story = Story::begin().await;
    for (filter, document) in [
        ("size(document) == 2", r#"{"a":1,"a":2}"#),
        ("type(document.zero) == int && document.zero == 0", r#"{"zero":-0}"#),
        ("type(document.zero) == double", r#"{"zero":-0.0}"#),
        ("!(double('NaN') < 1.0) && !(double('NaN') > 1.0)", r#"{"a":1}"#),
    ] {
        assert_eq!(told(&story, filter, &[document]).await, [0], "{filter}");
        let tried = tried(story.api(), filter, &document.replacen('{', r#"{"rev":1,"#, 1)).await;
        assert_eq!(tried, json!({"result": true}), "{filter}");
    }
}
