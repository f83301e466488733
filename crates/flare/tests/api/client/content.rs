//! What a notification contains: envelopes, data, the document's own bytes, and the revision as the origin wrote it.

use serde_json::{Value, json};

use crate::support::{Flare, Receiver, Request, Story, document_url};

async fn told_with(story: &Story, content: Value, data: Value) -> String {
    let mut body = json!({"endpoint": {"url": story.receiver.url("/told")}});
    body["content"] = content;
    body["data"] = data;
    story.subscribe(body).await
}

/// Creates and deletes a document of odd spelling, and returns both requests.
async fn create_and_delete(story: &Story, subscription: &str, bytes: &str) -> (Request, Request) {
    let path = format!("/documents/{}", document_url(1));
    story.api().send("PUT", &path, &[], bytes.to_owned()).await.expect(202);
    story.settled(subscription).await;
    story.remove(1).await;
    let mut requests = story.receiver.wait_for(2).await;
    let delete = requests.remove(1);
    (requests.remove(0), delete)
}

const ODD: &str = "{ \"b\" : 1.0, \"rev\":\t7 ,\"a\":\"\\u00e9\" }";

#[tokio::test]
async fn by_default_an_envelope_with_the_document_is_sent() {
    let story = Story::begin().await;
    let subscription = told_with(&story, json!({}), json!({})).await;
    let (create, delete) = create_and_delete(&story, &subscription, ODD).await;
    let text = String::from_utf8(create.body.clone()).unwrap();
    assert!(text.contains(ODD), "the document is sent byte by byte as the origin wrote it: {text}");
    let envelope = create.json();
    assert_eq!((&envelope["id"], &envelope["action"]), (&document_url(1).into(), &"create".into()));
    assert_eq!((&envelope["revision"], &envelope["document"]["b"]), (&7.into(), &1.0.into()));
    let updated_at = envelope["updatedAt"].as_str().unwrap();
    assert!(updated_at.ends_with('Z') && updated_at.contains('T'), "{updated_at}");
    assert!(envelope.get("data").is_none());
    let envelope = delete.json();
    assert_eq!((&envelope["action"], &envelope["revision"]), (&"delete".into(), &7.into()));
    assert!(envelope.get("document").is_none(), "{envelope}");
}

#[tokio::test]
async fn data_is_put_into_the_envelope_with_its_wildcards() {
    let story = Story::begin().await;
    let data = json!({"service": "user", "id": "user {id} at {revision}", "n": 7, "b": true, "list": ["{id}", 1, false]});
    let subscription = told_with(&story, json!({"document": false}), data).await;
    let (create, _) = create_and_delete(&story, &subscription, ODD).await;
    let envelope = create.json();
    let expected =
        json!({"service": "user", "id": "user 1 at 7", "n": 7, "b": true, "list": ["1", 1, false]});
    assert_eq!(envelope["data"], expected);
    assert!(envelope.get("document").is_none(), "{envelope}");
}

#[tokio::test]
async fn without_an_envelope_the_body_is_the_documents_own_bytes() {
    let story = Story::begin().await;
    let subscription = told_with(&story, json!({"envelope": false}), json!({})).await;
    let (create, delete) = create_and_delete(&story, &subscription, ODD).await;
    assert_eq!(create.body, ODD.as_bytes());
    assert_eq!(create.header("content-type"), "application/json");
    assert_eq!((delete.action(), delete.body.len(), delete.header("content-type")), ("delete", 0, ""));
}

#[tokio::test]
async fn without_envelope_and_document_there_is_no_body() {
    let story = Story::begin().await;
    let subscription = told_with(&story, json!({"envelope": false, "document": false}), json!({})).await;
    let (create, delete) = create_and_delete(&story, &subscription, ODD).await;
    for request in [create, delete] {
        assert_eq!((request.body.len(), request.header("content-type")), (0, ""));
        assert_eq!(request.revision(), 7, "the headers still say what happened");
    }
}

#[tokio::test]
async fn a_content_type_of_the_subscription_is_kept() {
    let story = Story::begin().await;
    let endpoint =
        json!({"url": story.receiver.url("/told"), "headers": {"Content-Type": ["application/vnd.x+json"]}});
    story.subscribe(json!({"endpoint": endpoint})).await;
    story.put(1, 1).await;
    assert_eq!(story.receiver.wait_for(1).await[0].header("content-type"), "application/vnd.x+json");
}

#[tokio::test]
async fn a_date_is_shown_as_the_origin_wrote_it() {
    let receiver = Receiver::start().await;
    let flare = Flare::start().await;
    let api = flare.api();
    let change = json!({"field": "meta.at", "format": "2006-01-02T15:04:05.999Z07:00"});
    let resource = json!({"endpoint": "http://origin.test/{kind}/{id}", "change": change});
    let resource =
        api.post("/resources", &resource).await.expect(201).json()["id"].as_str().unwrap().to_owned();
    let subscriptions = format!("/resources/{resource}/subscriptions");
    let url = receiver.url("/{id}?kind={kind}&at={revision}");
    api.post(&subscriptions, &json!({"endpoint": {"url": url}})).await.expect(201);
    let (early, late) = ("2026-01-02T03:04:05.1+01:00", "2026-01-02T02:04:05.25Z");
    let put = |at: &str| {
        let document = json!({"meta": {"at": at}});
        async move { api.put("http://origin.test/k%26%C3%A9/1", &document).await }
    };
    assert_eq!(put(early).await, "created");
    let first = receiver.wait_for(1).await.remove(0);
    assert_eq!(first.path, "/1?kind=k%26%C3%A9&at=2026-01-02T03%3A04%3A05.1%2B01%3A00");
    assert_eq!((first.header("flare-revision"), &first.json()["revision"]), (early, &early.into()));
    assert_eq!(put(late).await, "updated", "dates compare by the moment, not by their text");
    let second = receiver.wait_for(2).await.remove(1);
    assert_eq!(second.header("flare-revision"), late);
    assert_eq!(put("2026-01-02T02:04:05.250Z").await, "unchanged");
    let shown = api.get("/documents/http://origin.test/k%26%C3%A9/1").await.expect(200).json();
    assert_eq!(shown["revision"], late);
}

#[tokio::test]
async fn revisions_are_exact_over_the_whole_range_of_64_bits() {
    let story = Story::begin().await;
    story.subscribe_simply(json!({})).await;
    let mut count = 0;
    for revision in [i64::MIN, -1, 0, 9_007_199_254_740_993, i64::MAX] {
        story.put(1, revision).await;
        count += 1;
        let request = story.receiver.wait_for(count).await.remove(count - 1);
        assert_eq!((request.revision(), &request.json()["revision"]), (revision, &revision.into()));
    }
}
