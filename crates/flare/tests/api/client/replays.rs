//! Replays: a client is told again, on request, even what it has.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Request, Story, document_url, until};

async fn replay(story: &Story, subscription: &str, body: Value) -> (String, Value) {
    let answer = story.api().post(&format!("{subscription}/replay"), &body).await.expect(202);
    (answer.header("location").to_owned(), answer.json())
}

async fn through(story: &Story, location: &str) -> Value {
    until("the replay is through", || async {
        let progress = story.api().get(location).await.expect(200).json();
        (progress["state"] == "done").then_some(progress)
    })
    .await
}

/// A client that has ten documents and was told of nothing else.
async fn told() -> (Story, String) {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    for document in 0..10 {
        story.put(document, 1).await;
    }
    story.settled(&subscription).await;
    (story, subscription)
}

fn sent_by<'a>(requests: &'a [Request], replay: &Value) -> Vec<&'a Request> {
    requests.iter().filter(|request| request.header("flare-replay") == replay["id"]).collect()
}

#[tokio::test]
async fn everything_is_sent_again_and_marked() {
    let (story, subscription) = told().await;
    for body in [json!({}), json!({"scope": "all"})] {
        let (location, begun) = replay(&story, &subscription, body).await;
        assert_eq!(begun["total"], 10);
        assert_eq!(location, format!("{subscription}/replays/{}", begun["id"].as_str().unwrap()));
        let done = through(&story, &location).await;
        assert_eq!((&done["id"], &done["total"], &done["done"]), (&begun["id"], &10.into(), &10.into()));
        let requests = story.receiver.requests();
        let sent = sent_by(&requests, &begun);
        assert_eq!(sent.len(), 10);
        assert!(sent.iter().all(|request| (request.action(), request.revision()) == ("update", 1)));
    }
    let requests = story.receiver.requests();
    let ids: HashSet<_> = requests.iter().map(|request| request.header("webhook-id")).collect();
    assert_eq!(ids.len(), 30, "each replay has ids of its own");
    story.put(1, 2).await;
    let last = story.receiver.wait_for(31).await.pop().unwrap();
    assert_eq!(last.header("flare-replay"), "", "what is live is not marked");
}

#[tokio::test]
async fn a_replay_without_a_body_is_one_of_everything() {
    let (story, subscription) = told().await;
    let answer = story.command(&subscription, "replay").await.expect(202).json();
    assert_eq!(answer["total"], 10);
}

#[tokio::test]
async fn deleted_documents_are_not_replayed_to_a_client_that_knows() {
    let (story, subscription) = told().await;
    story.remove(3).await;
    story.settled(&subscription).await;
    let (location, begun) = replay(&story, &subscription, json!({})).await;
    through(&story, &location).await;
    let requests = story.receiver.requests();
    let sent = sent_by(&requests, &begun);
    assert_eq!(sent.len(), 9);
    assert!(sent.iter().all(|request| request.document() != document_url(3)));
}

#[tokio::test]
async fn only_what_changed_since_a_time_is_sent_again() {
    let (story, subscription) = told().await;
    let shown = story.api().get(&format!("/documents/{}", document_url(9))).await.json();
    let earlier = shown["updatedAt"].as_str().unwrap().to_owned();
    // The clock shows milliseconds: wait for the next one.
    until("the clock has moved on", || async {
        story.put("witness", std::process::id().into()).await;
        story.remove("witness").await;
        let probe = format!("tick-{}", story.receiver.count());
        story.put(&probe, 1).await;
        let shown = story.api().get(&format!("/documents/{}", document_url(&probe))).await.json();
        (shown["updatedAt"].as_str().unwrap() > earlier.as_str()).then_some(())
    })
    .await;
    story.put(4, 2).await;
    let shown = story.api().get(&format!("/documents/{}", document_url(4))).await.json();
    story.settled(&subscription).await;
    let (location, begun) = replay(&story, &subscription, json!({"since": shown["updatedAt"]})).await;
    let done = through(&story, &location).await;
    assert_eq!((&done["total"], &done["done"]), (&begun["total"], &begun["total"]));
    let requests = story.receiver.requests();
    let sent: Vec<_> =
        sent_by(&requests, &begun).iter().map(|request| request.document().to_owned()).collect();
    assert!(sent.contains(&document_url(4)), "{sent:?}");
    assert!(!sent.contains(&document_url(9)), "{sent:?}");
    assert_eq!(begun["total"], sent.len(), "the total respects the time: {sent:?}");
}

#[tokio::test]
async fn one_document_is_sent_again() {
    let (story, subscription) = told().await;
    let (location, begun) = replay(&story, &subscription, json!({"document": document_url(4)})).await;
    assert_eq!(begun["total"], 1);
    through(&story, &location).await;
    let requests = story.receiver.requests();
    assert_eq!(requests.len(), 11);
    let sent = sent_by(&requests, &begun);
    assert_eq!((sent.len(), sent[0].document()), (1, document_url(4).as_str()));
}

#[tokio::test]
async fn what_lags_is_sent_at_once() {
    let answer =
        |request: &Request| Reply::Status(if request.document().ends_with("/bad") { 500 } else { 200 });
    let story = Story::told(Receiver::answering(answer).await).await;
    let subscription = story.subscribe_simply(json!({"retry": {"interval": "1h"}})).await;
    story.put("good", 1).await;
    story.put("bad", 1).await;
    story
        .until_status(&subscription, "one waits", |s| s["feed"]["waiting"] == 1 && s["delivered"] == 1)
        .await;
    story.receiver.answer(|_| Reply::Status(200));
    let (location, begun) = replay(&story, &subscription, json!({"scope": "lagging"})).await;
    assert_eq!(begun["total"], 1);
    through(&story, &location).await;
    let status = story.settled(&subscription).await;
    assert_eq!(status["delivered"], 2);
    let requests = story.receiver.requests();
    assert_eq!(requests.len(), 3, "what the client has is not sent again");
    let sent = sent_by(&requests, &begun);
    assert_eq!((sent.len(), sent[0].document()), (1, document_url("bad").as_str()));
    let progress = story.api().get(&location).await.expect(200).json();
    assert_eq!((&progress["done"], &progress["total"]), (&1.into(), &1.into()));
}

#[tokio::test]
async fn lagging_covers_what_waits_and_what_was_given_up_and_is_running_until_they_are_through() {
    let story = Story::told(Receiver::answering(|_| Reply::Status(500)).await).await;
    let subscription = story.subscribe_simply(json!({"retry": {"quantity": 1}})).await;
    story.put("dead", 1).await;
    story.until_status(&subscription, "given up", |s| s["feed"]["deadLetters"] == 1).await;
    let longer = json!({"delivery": {"retry": {"quantity": 5, "interval": "1h", "maxInterval": "1h"}}});
    story.api().patch(&subscription, &longer).await.expect(200);
    story.put("waiting", 1).await;
    story.until_status(&subscription, "one waits", |s| s["feed"]["waiting"] == 1).await;
    story.command(&subscription, "pause").await.expect(200);
    let (location, begun) = replay(&story, &subscription, json!({"scope": "lagging"})).await;
    assert_eq!(begun["total"], 2);
    let progress = story.api().get(&location).await.expect(200).json();
    assert_eq!((&progress["state"], &progress["done"]), (&"running".into(), &0.into()), "{progress}");
    story.receiver.answer(|_| Reply::Status(200));
    story.command(&subscription, "resume").await.expect(200);
    let done = through(&story, &location).await;
    assert_eq!((&done["done"], &done["total"]), (&2.into(), &2.into()));
    assert_eq!(sent_by(&story.receiver.requests(), &begun).len(), 2);
}

#[tokio::test]
async fn progress_counts_documents_and_survives_a_restart() {
    let mut story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({"concurrency": 1})).await;
    for document in 0..40 {
        story.put(document, 1).await;
        story.put(document, 2).await;
    }
    story.settled(&subscription).await;
    let told = story.receiver.count();
    // The client takes some of the replay, and then no more.
    let mut taken = 0;
    story.receiver.answer(move |_| {
        taken += 1;
        if taken <= 15 { Reply::Status(200) } else { Reply::Hang }
    });
    let (location, begun) = replay(&story, &subscription, json!({})).await;
    assert_eq!(begun["total"], 40);
    story.receiver.wait_for(told + 16).await;
    let running = until("fifteen are through", || async {
        let progress = story.api().get(&location).await.expect(200).json();
        (progress["done"] == 15).then_some(progress)
    })
    .await;
    assert_eq!((&running["state"], &running["total"]), (&"running".into(), &40.into()));
    let list = story.api().get(&format!("{subscription}/replays")).await.expect(200).json();
    assert_eq!((&list["pagination"]["total"], &list["replays"][0]["done"]), (&1.into(), &15.into()));
    if !crate::support::store_is_durable() {
        return;
    }
    story.api().get(&format!("{subscription}/dead-letters")).await.expect(200);
    story.command(&subscription, "pause").await.expect(200);
    story.flare.restart().await;
    let after = story.api().get(&location).await.expect(200).json();
    assert_eq!((&after["done"], &after["state"]), (&15.into(), &"running".into()), "{after}");
    story.receiver.answer(|_| Reply::Status(200));
    story.command(&subscription, "resume").await.expect(200);
    let done = through(&story, &location).await;
    assert_eq!((&done["done"], &done["total"]), (&40.into(), &40.into()));
    let requests = story.receiver.requests();
    let told: HashSet<_> = sent_by(&requests, &begun).iter().map(|r| r.document().to_owned()).collect();
    assert_eq!(told.len(), 40);
}

#[tokio::test]
async fn a_replay_waits_while_paused_and_no_second_one_begins() {
    let (story, subscription) = told().await;
    story.command(&subscription, "pause").await.expect(200);
    let (location, begun) = replay(&story, &subscription, json!({})).await;
    let progress = story.api().get(&location).await.expect(200).json();
    assert_eq!(progress["state"], "running");
    story.api().post(&format!("{subscription}/replay"), &json!({})).await.refused(409, &["under way"]);
    story.command(&subscription, "resume").await.expect(200);
    through(&story, &location).await;
    assert_eq!(sent_by(&story.receiver.requests(), &begun).len(), 10);
}

#[tokio::test]
async fn a_replay_sends_the_newest_even_when_it_changes_meanwhile() {
    let (story, subscription) = told().await;
    let slow = std::time::Duration::from_millis(5);
    story.receiver.answer(move |_| Reply::After(slow, Box::new(Reply::Status(200))));
    let (location, _) = replay(&story, &subscription, json!({})).await;
    for document in 0..10 {
        story.put(document, 2).await;
    }
    through(&story, &location).await;
    story.settled(&subscription).await;
    let requests = story.receiver.requests();
    crate::client::order::insist_on_order(&requests);
    assert!(crate::client::order::state_of(&requests).values().all(|revision| *revision == 2));
}

#[tokio::test]
async fn wrong_replays_are_refused() {
    let (story, subscription) = told().await;
    let path = format!("{subscription}/replay");
    for (body, word) in [
        (json!({"scope": "some"}), "scope"),
        (json!({"what": 1}), "what"),
        (json!({"since": "yesterday"}), "since"),
        (json!({"scope": "lagging", "since": "2026-01-01T00:00:00Z"}), "since"),
        (json!({"document": "nonsense"}), "document"),
        (json!({"document": document_url("unknown")}), "document"),
        (json!({"document": "http://elsewhere.test/1"}), "document"),
    ] {
        story.api().post(&path, &body).await.refused(400, &[word]);
    }
    story.api().get(&format!("{subscription}/replays/rpl_77")).await.refused(404, &["rpl_77"]);
    story.api().post("/resources/none/subscriptions/none/replay", &json!({})).await.refused(404, &["none"]);
    assert_eq!(story.receiver.count(), 10, "nothing was sent");
}

#[tokio::test]
async fn the_numbers_of_a_replay_are_of_what_is_sent() {
    let story = Story::begin().await;
    let url = |path: &str| json!({"url": story.receiver.url(path)});
    let put = async |id: &str, revision: i64, stock: i64| {
        story.api().put(&document_url(id), &json!({"rev": revision, "stock": stock})).await
    };
    let filtered = story.subscribe(json!({"endpoint": url("/filter"), "filter": "document.stock > 5"})).await;
    let held_back = story.subscribe(json!({"endpoint": url("/when"), "when": "document.stock > 7"})).await;
    let paused = story.subscribe(json!({"endpoint": url("/paused")})).await;
    for stock in 0..10 {
        put(&format!("{stock}"), 1, stock).await;
    }
    for subscription in [&filtered, &held_back, &paused] {
        story.settled(subscription).await;
    }
    story.command(&paused, "pause").await.expect(200);
    put("later", 1, 9).await;
    story.settled(&filtered).await;
    story.settled(&held_back).await;
    for (subscription, total) in [(&filtered, 5), (&held_back, 3), (&paused, 10)] {
        let (location, begun) = replay(&story, subscription, json!({})).await;
        assert_eq!(begun["total"], total, "{subscription}");
        if subscription == &paused {
            story.command(&paused, "resume").await.expect(200);
        }
        let done = through(&story, &location).await;
        assert_eq!((&done["total"], &done["done"]), (&total.into(), &total.into()));
        let requests = story.receiver.requests();
        let sent = requests.iter().filter(|request| {
            let path = ["/filter", "/when", "/paused"].iter().position(|path| *path == request.path);
            let own = [&filtered, &held_back, &paused].iter().position(|other| *other == subscription);
            path == own && request.header("flare-replay") == begun["id"]
        });
        assert_eq!(sent.count(), total);
    }
}

#[tokio::test]
async fn a_document_that_its_filter_keeps_from_the_client_is_not_counted_either() {
    let story = Story::begin().await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let subscription = story.subscribe(json!({"endpoint": endpoint, "filter": "document.stock > 5"})).await;
    for (id, stock) in [("in", 6), ("out", 5)] {
        story.api().put(&document_url(id), &json!({"rev": 1, "stock": stock})).await;
    }
    story.settled(&subscription).await;
    for (id, total) in [("out", 0), ("in", 1)] {
        let (location, begun) = replay(&story, &subscription, json!({"document": document_url(id)})).await;
        let done = through(&story, &location).await;
        assert_eq!(
            (&begun["total"], &done["total"], &done["done"]),
            (&total.into(), &total.into(), &total.into())
        );
    }
    story.settled(&subscription).await;
    assert_eq!(story.receiver.count(), 2, "its creation, and once more");
}

#[tokio::test]
async fn a_delete_that_is_sent_again_counts() {
    let answer = |request: &Request| Reply::Status(if request.action() == "delete" { 500 } else { 200 });
    let story = Story::told(Receiver::answering(answer).await).await;
    let subscription = story.subscribe_simply(json!({"retry": {"quantity": 1}})).await;
    for document in 0..3 {
        story.put(document, 1).await;
    }
    story.settled(&subscription).await;
    story.remove(1).await;
    story.until_status(&subscription, "given up", |s| s["feed"]["deadLetters"] == 1).await;
    story.receiver.answer(|_| Reply::Status(200));
    let (location, begun) = replay(&story, &subscription, json!({})).await;
    assert_eq!(begun["total"], 3, "two documents and a delete");
    assert_eq!(through(&story, &location).await["done"], 3);
    let requests = story.receiver.requests();
    assert_eq!(sent_by(&requests, &begun).len(), 3);
}
