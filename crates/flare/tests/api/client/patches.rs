//! `content.patch`: an update is told as the difference to what the client has, and whole wherever that is not certain.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::client::signatures::{assert_verified, subscribe};
use crate::support::{Receiver, Reply, Request, Setup, Story, document_url, read_events, store_is_durable};

/// A document of some length, so that a patch of it is shorter.
fn document(revision: i64, price: Value) -> Value {
    json!({"rev": revision, "price": price, "tags": ["a", "b", "c"], "text": "x".repeat(300)})
}

async fn put(story: &Story, subscription: &str, document: &Value) -> Request {
    let before = story.receiver.count();
    story.api().put(&document_url(1), document).await;
    let request = story.receiver.wait_for(before + 1).await.pop().expect("it came");
    story.settled(subscription).await;
    request
}

async fn patched(story: &Story, content: Value) -> String {
    subscribe(story, json!({"content": content, "delivery": {"retry": {"interval": "50ms"}}})).await.0
}

fn is_patch(request: &Request) -> bool {
    let header = !request.header("flare-patch-from").is_empty();
    let body = request.json();
    assert_eq!(body.get("patch").is_some(), header, "{body}");
    assert_eq!(body.get("document").is_some(), !header, "{body}");
    header
}

#[tokio::test]
async fn an_update_is_told_as_a_merge_patch() {
    let story = Story::begin().await;
    let content = json!({"patch": true});
    let (subscription, secret) = subscribe(&story, json!({"content": content, "data": {"a": 1}})).await;
    let mut client = document(1, json!(5));
    let create = put(&story, &subscription, &client).await;
    assert_eq!((create.action(), &create.json()["document"]), ("create", &client));
    let next = document(2, json!(6));
    let update = put(&story, &subscription, &next).await;
    let body = update.json();
    assert_eq!(body["patch"], json!({"rev": 2, "price": 6}));
    assert_eq!((&body["patchFrom"], update.header("flare-patch-from")), (&1.into(), "1"));
    assert_eq!((&body["revision"], &body["data"]), (&2.into(), &json!({"a": 1})));
    json_patch::merge(&mut client, &body["patch"]);
    assert_eq!(client, next);
    assert_verified(&[create, update], &secret);
    let shown = story.api().get(&subscription).await.expect(200).json();
    assert_eq!(shown["content"]["patch"], "merge");
}

#[tokio::test]
async fn without_an_envelope_the_content_type_tells_a_patch() {
    for (kind, media) in [("merge", "application/merge-patch+json"), ("json", "application/json-patch+json")]
    {
        let story = Story::begin().await;
        let subscription = patched(&story, json!({"patch": kind, "envelope": false})).await;
        let mut client = document(1, json!(5));
        let create = put(&story, &subscription, &client).await;
        assert_eq!((create.header("content-type"), create.json()), ("application/json", client.clone()));
        let mut next = document(2, json!(6));
        next["tags"] = json!(["a", "c"]);
        let update = put(&story, &subscription, &next).await;
        assert_eq!((update.header("content-type"), update.header("flare-patch-from")), (media, "1"));
        match kind {
            "merge" => json_patch::merge(&mut client, &update.json()),
            _ => {
                let patch: json_patch::Patch = serde_json::from_slice(&update.body).expect("a patch");
                json_patch::patch(&mut client, &patch).expect("it applies");
            }
        }
        assert_eq!(client, next, "{kind}");
    }
}

#[tokio::test]
async fn an_event_carries_a_patch_by_its_type() {
    for mode in ["structured", "binary"] {
        let story = Story::begin().await;
        let subscription =
            patched(&story, json!({"format": "cloudevents", "mode": mode, "patch": true})).await;
        put(&story, &subscription, &document(1, json!(5))).await;
        let update = put(&story, &subscription, &document(2, json!(6))).await;
        assert_eq!(update.header("flare-patch-from"), "1");
        let Some(events) = read_events(&[update]) else { return };
        assert_eq!(events[0]["attributes"]["datacontenttype"], "application/merge-patch+json");
        assert_eq!(events[0]["data"], json!({"rev": 2, "price": 6}), "{mode}");
    }
}

#[tokio::test]
async fn what_a_merge_patch_cannot_say_is_sent_whole() {
    let story = Story::begin().await;
    let subscription = patched(&story, json!({"patch": "merge"})).await;
    put(&story, &subscription, &document(1, json!(5))).await;
    assert!(!is_patch(&put(&story, &subscription, &document(2, Value::Null)).await));
    assert!(is_patch(&put(&story, &subscription, &document(3, json!(1))).await), "from null it can");
}

#[tokio::test]
async fn after_an_unknown_outcome_the_document_is_sent_whole() {
    let story = Story::begin().await;
    let subscription = patched(&story, json!({"patch": "json"})).await;
    put(&story, &subscription, &document(1, json!(5))).await;
    for (revision, reply) in [(2, Reply::Status(503)), (3, Reply::Reset)] {
        let mut replies = vec![reply];
        story.receiver.answer(move |_| replies.pop().unwrap_or(Reply::Status(200)));
        let before = story.receiver.count();
        put(&story, &subscription, &document(revision, json!(revision))).await;
        let requests = story.receiver.wait_for(before + 2).await.split_off(before);
        assert!(is_patch(&requests[0]), "the first attempt is certain of what the client has");
        assert!(requests[1..].iter().all(|request| !is_patch(request)), "it may have arrived");
        assert_eq!(requests[0].header("webhook-id"), requests[1].header("webhook-id"));
    }
    assert!(
        is_patch(&put(&story, &subscription, &document(4, json!(0))).await),
        "and now it is certain again"
    );
}

#[tokio::test]
async fn replays_deletes_and_large_documents_are_whole() {
    let setup = Setup::default().with("FLARE_DELIVERY_STATE_LIMIT", "1KB");
    let story = Story::with(setup, Receiver::start().await).await;
    let subscription = patched(&story, json!({"patch": true})).await;
    put(&story, &subscription, &document(1, json!(5))).await;
    story.command(&subscription, "replay").await.expect(202);
    let replayed = story.receiver.wait_for(2).await.pop().expect("it came");
    assert_eq!((replayed.action(), is_patch(&replayed)), ("update", false));
    story.settled(&subscription).await;
    assert!(is_patch(&put(&story, &subscription, &document(2, json!(6))).await));
    story.remove(1).await;
    let delete = story.receiver.wait_for(4).await.pop().expect("it came");
    assert_eq!((delete.action(), delete.json().get("patch")), ("delete", None));
    story.settled(&subscription).await;
    let born = put(&story, &subscription, &document(3, json!(6))).await;
    assert_eq!((born.action(), is_patch(&born)), ("create", false));
    let large = json!("x".repeat(2000));
    assert!(is_patch(&put(&story, &subscription, &document(4, large.clone())).await));
    let mut next = document(5, large);
    next["tags"] = json!([]);
    assert!(!is_patch(&put(&story, &subscription, &next).await), "one above the limit is not kept");
}

#[tokio::test]
async fn a_state_is_not_believed_across_a_time_without_it() {
    let story = Story::begin().await;
    let subscription = patched(&story, json!({})).await;
    let switch = async |patch: bool| {
        story.api().patch(&subscription, &json!({"content": {"patch": patch}})).await.expect(200);
    };
    put(&story, &subscription, &document(1, json!(1))).await;
    switch(true).await;
    assert!(!is_patch(&put(&story, &subscription, &document(2, json!(2))).await), "it was not kept before");
    assert!(is_patch(&put(&story, &subscription, &document(3, json!(3))).await));
    switch(false).await;
    assert!(!is_patch(&put(&story, &subscription, &document(4, json!(4))).await));
    switch(true).await;
    assert!(!is_patch(&put(&story, &subscription, &document(5, json!(5))).await), "not from revision 3");
    assert!(is_patch(&put(&story, &subscription, &document(6, json!(6))).await));
}

#[tokio::test]
async fn a_clean_stop_keeps_the_states_and_a_kill_leaves_none_that_is_believed() {
    if !store_is_durable() {
        return;
    }
    let mut story = Story::begin().await;
    let subscription = patched(&story, json!({"patch": true})).await;
    put(&story, &subscription, &document(1, json!(1))).await;
    story.flare.stop().await;
    story.flare.restart().await;
    let update = put(&story, &subscription, &document(2, json!(2))).await;
    assert!(is_patch(&update), "read from the ledger");
    story.flare.kill();
    story.flare.restart().await;
    put(&story, &subscription, &document(3, json!(3))).await;
    // The outcome of revision 2 may not have been recorded: then it comes once more.
    let first = &story.receiver.requests()[2];
    assert!(!is_patch(first), "an update may have been open: {}", first.json());
    assert!(is_patch(&put(&story, &subscription, &document(4, json!(4))).await));
}

#[tokio::test]
async fn what_a_client_pulls_is_whole() {
    let story = Story::begin().await;
    let (subscription, _) = subscribe(&story, json!({"mode": "passive", "content": {"patch": true}})).await;
    let send = async |revision: i64| {
        story.api().put(&document_url(1), &document(revision, json!(revision))).await;
        let sent = story.command(&subscription, "deliver?quantity=1").await.expect(200).json();
        assert_eq!(sent["delivered"], 1, "{sent}");
        story.receiver.requests().pop().expect("it came")
    };
    assert!(!is_patch(&send(1).await));
    assert!(is_patch(&send(2).await), "what is sent on request may be a patch");
    story.api().put(&document_url(1), &document(3, json!(3))).await;
    let reserved = story.command(&subscription, "reserve?quantity=1&wait=20s").await.expect(200).json();
    let message = &reserved["messages"][0];
    assert_eq!((&message["action"], &message["body"]["document"]["rev"]), (&"update".into(), &3.into()));
    let settled = json!({"messages": [{"lease": message["lease"], "status": "success"}]});
    story.api().post(&format!("{subscription}/settle"), &settled).await.expect(200);
    assert!(!is_patch(&send(4).await), "what was pulled is not kept");
    assert!(is_patch(&send(5).await));
}

/// A client that applies what it gets, and answers the truth only sometimes. A patch that does not start from what it
/// has is a broken promise.
#[derive(Default)]
struct Client {
    documents: HashMap<String, Value>,
    broken: Vec<String>,
    requests: u64,
    patches: u64,
}

impl Client {
    fn take(&mut self, request: &Request) {
        let url = request.document().to_owned();
        let body = request.json();
        if request.action() == "delete" {
            self.documents.remove(&url);
        } else if let Some(patch) = body.get("patch") {
            self.patches += 1;
            let has = self.documents.entry(url).or_default();
            if has["rev"] != body["patchFrom"] {
                self.broken.push(format!("{body} does not start from {has}"));
            }
            json_patch::merge(has, patch);
        } else {
            self.documents.insert(url, body["document"].clone());
        }
    }

    /// Takes it or not, says so or not.
    fn answer(&mut self, request: &Request) -> Reply {
        self.requests += 1;
        let chance = self.requests.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60;
        if chance != 0 {
            self.take(request);
        }
        match chance {
            0 | 1 => Reply::Status(503),
            2 => Reply::Reset,
            _ => Reply::Status(200),
        }
    }
}

#[tokio::test]
async fn crashes_a_client_that_lies_still_ends_with_the_newest_documents() {
    let client = Arc::new(Mutex::new(Client::default()));
    let state = client.clone();
    let receiver = Receiver::answering(move |request| state.lock().unwrap().answer(request)).await;
    let setup = Setup::default().with("FLARE_DELIVERY_THREADS", "3");
    let mut story = Story::with(setup, receiver).await;
    let delivery = json!({"retry": {"interval": "5ms", "maxInterval": "20ms", "quantity": 1000}});
    let body = json!({"content": {"patch": true}, "delivery": delivery});
    let (subscription, _) = subscribe(&story, body).await;
    let mut newest = HashMap::new();
    for revision in 1..=120_i64 {
        let url = document_url(revision % 7);
        let mut next = document(revision, json!(revision % 3));
        next[format!("field{}", revision % 5)] = json!(revision);
        story.api().put(&url, &next).await;
        newest.insert(url, next);
        if revision % 30 == 0 && store_is_durable() {
            story.flare.kill();
            story.receiver.drained().await;
            story.flare.restart().await;
        }
        if revision % 12 == 0 {
            // Lanes go to other threads and come back, and so must what is known of them.
            let shards = if revision % 24 == 0 { 1 } else { 3 };
            story.api().patch(&subscription, &json!({"shards": shards})).await.expect(200);
        }
        if revision % 10 == 0 {
            story.settled(&subscription).await;
        }
    }
    story.settled(&subscription).await;
    let client = client.lock().unwrap();
    assert_eq!(client.broken, Vec::<String>::new());
    assert_eq!(client.documents, newest);
    assert!(client.patches > 10, "{} patches of {} requests", client.patches, client.requests);
}

#[tokio::test]
async fn what_does_not_go_with_a_patch_is_refused_by_field() {
    let story = Story::begin().await;
    let url = story.receiver.url("/told");
    let typed = json!({"url": url, "headers": {"Content-Type": ["application/json"]}});
    for (body, words) in [
        (json!({"content": {"patch": "xml"}}), ["content.patch", "`merge`"]),
        (json!({"content": {"patch": 1}}), ["content.patch", "`json`"]),
        (json!({"content": {"patch": true, "document": false}}), ["content.patch", "content.document"]),
        (
            json!({"content": {"patch": true, "envelope": false}, "endpoint": typed}),
            ["endpoint.headers.content-type", "a patch"],
        ),
    ] {
        let mut whole = json!({"endpoint": {"url": url}});
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        story.api().post(&story.subscriptions(), &whole).await.refused(400, &words);
    }
    story.subscribe(json!({"endpoint": typed, "content": {"patch": true}})).await;
}
