//! What people write, as they are likely to write it: blanks and international names in urls, numbers of their own,
//! formats that are none, revisions of another kind, a slash too many.

use serde_json::{Value, json};

use crate::support::{Receiver, Setup, Story, document_url};

#[tokio::test]
async fn blanks_around_urls_of_resources_and_subscriptions_are_taken_off() {
    let flare = Setup::default().start().await;
    let draft = json!({"endpoint": " http://origin.test/blank/{id}\n", "change": {"field": "rev"}});
    let resource = flare.api().post("/resources", &draft).await.expect(201).json();
    assert_eq!(resource["endpoint"], "http://origin.test/blank/{id}");
    let receiver = Receiver::start().await;
    let url = receiver.url("/told");
    let subscriptions = format!("/resources/{}/subscriptions", resource["id"].as_str().unwrap());
    let draft = json!({"endpoint": {"url": format!("\t{url} "), "actions": {"delete": {"url": format!(" {url}/gone")}}}});
    let created = flare.api().post(&subscriptions, &draft).await.expect(201).json();
    assert_eq!(created["endpoint"]["url"], url.as_str());
    assert_eq!(created["endpoint"]["actions"]["delete"]["url"], format!("{url}/gone").as_str());
}

#[tokio::test]
async fn an_international_host_is_taken_as_its_xn_form() {
    let flare = Setup::default().start().await;
    let draft = json!({"endpoint": "http://Bücher.example/b/{id}", "change": {"field": "rev"}});
    let resource = flare.api().post("/resources", &draft).await.expect(201).json();
    assert_eq!(resource["endpoint"], "http://xn--bcher-kva.example/b/{id}");
    for path in ["/documents/http://b%C3%BCcher.example/b/1", "/documents/http://xn--bcher-kva.example/b/1"] {
        flare.api().send("PUT", path, &[], r#"{"rev":1}"#).await.expect(202);
    }
    let read = flare.api().get("/documents/http://xn--bcher-kva.example/b/1").await.expect(200).json();
    assert_eq!(read["id"], "http://xn--bcher-kva.example/b/1");
    let subscriptions = format!("/resources/{}/subscriptions", resource["id"].as_str().unwrap());
    let draft = json!({"endpoint": {"url": "http://münchen.example:81/tölt?ä={id}"}});
    let other = flare.api().post(&subscriptions, &draft).await.expect(201).json();
    assert_eq!(other["endpoint"]["url"], "http://xn--mnchen-3ya.example:81/tölt?ä={id}");
    let draft = json!({"endpoint": {"url": "http://münchen.example/told"}});
    let created = flare.api().post(&subscriptions, &draft).await.expect(201).json();
    assert_eq!(created["endpoint"]["url"], "http://xn--mnchen-3ya.example/told");
    let same = json!({"endpoint": {"url": "http://xn--mnchen-3ya.example/told"}});
    flare.api().post(&subscriptions, &same).await.refused(409, &[]);
}

#[tokio::test]
async fn numbers_in_data_come_back_as_they_were_written() {
    let story = Story::begin().await;
    let data = r#"{"a":1.10,"b":1e2,"c":-0,"d":12345678901234567890123,"e":[2.0,true,"x"]}"#;
    let body = format!(r#"{{"endpoint":{{"url":"{}"}},"data":{data}}}"#, story.receiver.url("/told"));
    let created = story.api().send("POST", &story.subscriptions(), &[], body).await.expect(201);
    let path = created.header("location").to_owned();
    let shown = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
    assert!(shown(&created.body).contains(data), "{}", shown(&created.body));
    // A patch of something else leaves them, and one of them is taken as it is written.
    let patch = r#"{"delivery":{"concurrency":2},"data":{"b":3.00,"c":null}}"#;
    let patched = story.api().send("PATCH", &path, &[], patch).await.expect(200);
    let data = r#"{"a":1.10,"b":3.00,"d":12345678901234567890123,"e":[2.0,true,"x"]}"#;
    assert!(shown(&patched.body).contains(data), "{}", shown(&patched.body));
    let read = story.api().get(&path).await.expect(200);
    assert!(shown(&read.body).contains(data), "{}", shown(&read.body));
    story.put(1, 1).await;
    story.settled(&path).await;
    let told = story.receiver.requests().pop().unwrap();
    assert!(shown(&told.body).contains(data), "{}", shown(&told.body));
    let nested = json!({"data": {"a": {"b": 1}}});
    story.api().patch(&path, &nested).await.refused(400, &["data.a", "a list of these"]);
}

#[tokio::test]
async fn a_format_that_is_no_whole_date_is_refused_with_a_suggestion() {
    let flare = Setup::default().start().await;
    for (format, words) in [
        ("RFC3339", &["name of a layout", "2006-01-02T15:04:05Z07:00"][..]),
        ("DateOnly", &["name of a layout", "2006-01-02"]),
        ("15:04:05", &["no whole date", "2006-01-02T15:04:05Z07:00"]),
        ("2006-01", &["no whole date"]),
    ] {
        let change = json!({"field": "at", "format": format});
        let draft = json!({"endpoint": "http://origin.test/dated/{id}", "change": change});
        flare.api().post("/resources", &draft).await.refused(400, words);
    }
}

/// A resource whose revisions are dates in this format, or integers or RFC 3339 without one.
async fn dated(format: Option<&str>) -> (crate::support::Flare, String) {
    let flare = Setup::default().start().await;
    let mut draft = json!({"endpoint": "http://origin.test/dated/{id}", "change": {"field": "at"}});
    if let Some(format) = format {
        draft["change"]["format"] = format.into();
    }
    flare.api().post("/resources", &draft).await.expect(201);
    (flare, "/documents/http://origin.test/dated/1".to_owned())
}

#[tokio::test]
async fn with_a_format_an_integer_is_no_revision() {
    let (flare, document) = dated(Some("20060102")).await;
    let api = flare.api();
    let put = async |at: Value| api.send("PUT", &document, &[], json!({"at": at}).to_string()).await;
    put(json!(20240506)).await.refused(400, &["\"at\"", "20240506", "a revision is a date", "20060102"]);
    put(json!("20240506")).await.expect(202);
    let delete = async |revision| api.send("DELETE", &document, &[("flare-revision", revision)], "").await;
    delete("7").await.refused(400, &["a revision is a date"]);
    assert_eq!(delete("20240507").await.expect(202).header("flare-outcome"), "deleted");
}

#[tokio::test]
async fn a_document_keeps_the_kind_of_revision_it_began_with() {
    let (flare, document) = dated(None).await;
    let send = |method, headers: Vec<(&'static str, &'static str)>, at: Value| {
        let body = json!({"at": at}).to_string();
        let (api, document) = (flare.api(), document.clone());
        async move { api.send(method, &document, &headers, body).await }
    };
    send("PUT", vec![], json!(7)).await.expect(202);
    let other = ["another kind", "integers"];
    send("PUT", vec![], json!("2024-05-06T07:08:09Z")).await.refused(400, &other);
    let date = vec![("flare-revision", "2024-05-06T07:08:09Z")];
    send("DELETE", date.clone(), json!(0)).await.refused(400, &other);
    let bulk = format!(
        "{}\n",
        json!({"id": "http://origin.test/dated/1", "document": {"at": "2024-05-06T07:08:09Z"}})
    );
    let answer = flare.api().send("POST", "/documents", &[], bulk).await.expect(200);
    assert!(String::from_utf8_lossy(&answer.body).contains("another kind"), "{answer:?}");
    assert_eq!(send("PUT", vec![], json!(8)).await.expect(202).header("flare-outcome"), "updated");
    // Its tombstone keeps it, too.
    send("DELETE", vec![("flare-revision", "9")], json!(0)).await.expect(202);
    send("DELETE", date, json!(0)).await.refused(400, &other);
    assert_eq!(send("PUT", vec![], json!(10)).await.expect(202).header("flare-outcome"), "created");
}

#[tokio::test]
async fn a_slash_at_the_end_of_the_apis_own_paths_is_taken_off() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    for path in ["/resources/", "/status/", "/healthz/", "/resources/?limit=1"] {
        story.api().get(path).await.expect(200);
    }
    story.api().get(&format!("{subscription}/")).await.expect(200);
    story.api().get(&format!("{subscription}/status/")).await.expect(200);
    let line = format!("{}\n", json!({"id": document_url(1), "document": {"rev": 1}}));
    story.api().send("POST", "/documents/", &[], line).await.expect(200);
    story.api().get(&format!("/documents/{}/", document_url(1))).await.expect(200);
    story.api().get("/resources//").await.refused(404, &[]);
}

#[tokio::test]
async fn what_has_the_wrong_type_is_told_in_words_for_people_and_not_repeated() {
    let story = Story::begin().await;
    let url = story.receiver.url("/told");
    let create = async |more: Value| {
        let mut draft = json!({"endpoint": {"url": url}});
        json_patch::merge(&mut draft, &more);
        story.api().post(&story.subscriptions(), &draft).await
    };
    let retry = create(json!({"delivery": {"retry": "often"}})).await;
    retry.refused(400, &["delivery.retry", "a string stands where an object is expected"]);
    let success = create(json!({"delivery": {"success": [70000]}})).await;
    success.refused(400, &["delivery.success", "70000", "an integer from 0 to 65535"]);
    let bare = json!({"endpoint": {"headers": {"Authorization": "Bearer hunter2"}}});
    let created = create(bare.clone()).await.refused(400, &["Authorization", "where a list is expected"]);
    let subscription = story.subscribe_simply(json!({})).await;
    let patched = story.api().patch(&subscription, &bare).await.refused(400, &["where a list is expected"]);
    for answer in [created, patched] {
        assert!(!String::from_utf8_lossy(&answer.body).contains("hunter2"), "{answer:?}");
    }
}
