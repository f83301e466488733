//! Order per document, coalescing, and the newest state in the end: what makes Flare converge clients.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Gate, Receiver, Reply, Request, Story, document_url, throughout, until_true};

/// What a client that believes its notifications has: by document, the newest revision.
pub fn state_of(requests: &[Request]) -> HashMap<String, i64> {
    let mut state = HashMap::new();
    for request in requests {
        match request.action() {
            "delete" => state.remove(request.document()),
            _ => state.insert(request.document().to_owned(), request.revision()),
        };
    }
    state
}

/// Insists that no document's sequence or revision ever falls.
pub fn insist_on_order(requests: &[Request]) {
    let mut newest: HashMap<&str, (u64, i64)> = HashMap::new();
    for request in requests {
        let this = (request.sequence(), request.revision());
        if let Some(before) = newest.insert(request.document(), this) {
            assert!(before.0 <= this.0 && before.1 <= this.1, "{}: {before:?}, {this:?}", request.document());
        }
    }
}

#[tokio::test]
async fn revisions_that_race_from_many_origins_reach_the_client_in_order() {
    const DELAY: Duration = Duration::from_millis(3);
    let story =
        Story::told(Receiver::answering(|_| Reply::After(DELAY, Box::new(Reply::Status(200)))).await).await;
    let subscription = story.subscribe_simply(json!({"concurrency": 20})).await;
    let mut origins = tokio::task::JoinSet::new();
    for origin in 0..8_i64 {
        let api = story.api();
        origins.spawn(async move {
            for step in 0..40_i64 {
                // Every origin has its own order, and revisions of all come from 1 to 320.
                let revision = 1 + (step * 7 + origin * 13) % 40 * 8 + origin;
                for document in 0..4 {
                    api.put(&document_url(document), &json!({"rev": revision})).await;
                }
            }
        });
    }
    while let Some(done) = origins.join_next().await {
        done.unwrap();
    }
    story.settled(&subscription).await;
    let requests = story.receiver.requests();
    insist_on_order(&requests);
    let mut last: HashMap<&str, &Request> = HashMap::new();
    for request in &requests {
        if let Some(before) = last.insert(request.document(), request) {
            assert!(request.at - before.at >= DELAY, "two requests were open for {}", request.document());
            assert!(before.sequence() < request.sequence() && before.revision() < request.revision());
        }
    }
    assert_eq!(last.len(), 4);
    assert!(last.values().all(|request| request.revision() == 320), "{last:?}");
}

#[tokio::test]
async fn what_changes_while_in_flight_is_sent_once_as_the_newest() {
    let gate = Gate::closed();
    let held = gate.clone();
    let story = Story::told(Receiver::answering(move |_| held.then(Reply::Status(200))).await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    story.receiver.wait_for(1).await;
    for revision in 2..=10 {
        story.put(1, revision).await;
    }
    assert_eq!(story.receiver.count(), 1);
    gate.open();
    story.settled(&subscription).await;
    let told: Vec<_> =
        story.receiver.requests().iter().map(|r| (r.action().to_owned(), r.revision())).collect();
    assert_eq!(told, [("create".into(), 1), ("update".into(), 10)]);
}

#[tokio::test]
async fn a_client_that_was_down_gets_one_notification_for_each_document() {
    let story = Story::told(Receiver::answering(|_| Reply::Status(503)).await).await;
    let subscription =
        story.subscribe_simply(json!({"retry": {"interval": "20ms", "maxInterval": "100ms"}})).await;
    for revision in 1..=10 {
        for document in 0..10 {
            story.put(document, revision).await;
        }
    }
    story.remove(3).await;
    until_true("it was tried", || story.receiver.count() >= 3).await;
    let down = story.receiver.count();
    story.receiver.answer(|_| Reply::Status(200));
    story.settled(&subscription).await;
    let all = story.receiver.requests();
    insist_on_order(&all);
    // One more may have been answered 503 between the count and the change.
    let up: Vec<_> = all[down..].iter().filter(|request| request.action() != "delete").collect();
    assert!((9..=11).contains(&up.len()), "{}", up.len());
    let newest = state_of(&all[down..]);
    assert_eq!(newest.len(), 9);
    assert!(newest.values().all(|revision| *revision == 10), "{newest:?}");
}

#[tokio::test]
async fn a_retry_carries_the_newest_and_counts_anew() {
    let story = Story::told(Receiver::answering(|_| Reply::Status(503)).await).await;
    // The newer one comes while the first waits, for which there is time until the third attempt.
    let retry = |interval: &str| json!({"quantity": 3, "interval": interval, "maxInterval": interval});
    let subscription = story.subscribe_simply(json!({"retry": retry("2s")})).await;
    story.put(1, 1).await;
    story.receiver.wait_for(1).await;
    story.put(1, 2).await;
    let patch = json!({"delivery": {"retry": retry("20ms")}});
    story.api().patch(&subscription, &patch).await.expect(200);
    let status = story.until_status(&subscription, "given up", |s| s["feed"]["deadLetters"] == 1).await;
    let revisions: Vec<_> = story.receiver.requests().iter().map(|r| r.revision()).collect();
    assert!(revisions.ends_with(&[2, 2, 2]) && !revisions.ends_with(&[2, 2, 2, 2]), "{revisions:?}");
    assert_eq!(status["feed"]["waiting"], 0);
}

#[tokio::test]
async fn the_beginning_has_no_gap_to_live() {
    let story = Story::begin().await;
    let mut expected = HashMap::new();
    for document in 0..150 {
        story.put(document, 1).await;
        expected.insert(document_url(document), 1);
    }
    story.remove(7).await;
    expected.remove(&document_url(7));
    let api = story.api();
    let writer = tokio::spawn(async move {
        for document in 100..250 {
            api.put(&document_url(document), &json!({"rev": 2})).await;
        }
    });
    let url = story.receiver.url("/told");
    let body = json!({"endpoint": {"url": url}, "start": "beginning"});
    let created = story.api().post(&story.subscriptions(), &body).await.expect(201);
    let status = created.json()["status"].as_str().unwrap().to_owned();
    assert!(status == "preparing" || status == "active", "{status}");
    let subscription = created.header("location");
    writer.await.unwrap();
    for document in 100..250 {
        expected.insert(document_url(document), 2);
    }
    story.until_status(subscription, "it is active", |status| status["status"] == "active").await;
    let status = story.settled(subscription).await;
    let requests = story.receiver.requests();
    insist_on_order(&requests);
    assert_eq!(state_of(&requests), expected);
    assert_eq!(status["feed"]["held"], expected.len());
    let creates = requests.iter().filter(|request| request.action() == "create").count();
    assert_eq!(creates, expected.len(), "each document is created once");
}

#[tokio::test]
async fn without_a_beginning_only_what_changes_is_sent() {
    let story = Story::begin().await;
    story.put("old", 1).await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put("new", 1).await;
    story.settled(&subscription).await;
    assert_eq!(state_of(&story.receiver.requests()), HashMap::from([(document_url("new"), 1)]));
}

#[tokio::test]
async fn a_pause_loses_nothing() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(0, 1).await;
    story.settled(&subscription).await;
    for _ in 0..2 {
        let paused = story.command(&subscription, "pause").await.expect(200).json();
        assert_eq!(paused["status"], "paused");
    }
    let before = story.receiver.count();
    for revision in 2..=4 {
        for document in 0..20 {
            story.put(document, revision).await;
        }
    }
    throughout(Duration::from_millis(150), "nothing is sent", || story.receiver.count() == before).await;
    for _ in 0..2 {
        let resumed = story.command(&subscription, "resume").await.expect(200).json();
        assert_eq!(resumed["status"], "active");
    }
    story.settled(&subscription).await;
    let sent = story.receiver.requests().split_off(before);
    assert_eq!(sent.len(), 20, "one for each document");
    assert!(sent.iter().all(|request| request.revision() == 4));
    let updates: Vec<_> = sent.iter().filter(|r| r.action() == "update").map(|r| r.document()).collect();
    assert_eq!(updates, [document_url(0)]);
}

#[tokio::test]
async fn a_changed_url_keeps_what_the_client_has() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    story.settled(&subscription).await;
    let elsewhere = Receiver::start().await;
    let patch = json!({"endpoint": {"url": elsewhere.url("/moved")}});
    let patched: Value = story.api().patch(&subscription, &patch).await.expect(200).json();
    assert_eq!(patched["endpoint"]["url"], elsewhere.url("/moved"));
    story.put(1, 2).await;
    story.put(2, 1).await;
    story.settled(&subscription).await;
    let mut told: Vec<_> = elsewhere.requests().iter().map(|r| r.action().to_owned()).collect();
    told.sort();
    assert_eq!(told, ["create", "update"]);
    assert_eq!(story.receiver.count(), 1);
}
