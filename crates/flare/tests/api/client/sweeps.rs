//! Sweeps (replays, changed filters, the beginning) come to their end whatever the client does meanwhile: whoever stands
//! still has something that wakes him.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{Receiver, Reply, Setup, Story, document_url, store_is_durable, until};

/// Every limit that a sweep or a reader may stand still for, as low as it goes.
fn tiny() -> Setup {
    let limits = ["WINDOW", "WAITING_LIMIT", "ISSUE_BLOCK", "PAGE_ROWS"];
    let setup = Setup::default().with("FLARE_DELIVERY_TAIL_BYTES", "64KB");
    limits.iter().fold(setup, |setup, limit| setup.with(&format!("FLARE_DELIVERY_{limit}"), "1"))
}

/// A client that answers nothing to its first requests, and 200 to the others.
async fn hanging_at_first(requests: usize) -> Receiver {
    let seen = Arc::new(AtomicUsize::new(0));
    Receiver::answering(move |_| match seen.fetch_add(1, Ordering::SeqCst) < requests {
        true => Reply::Hang,
        false => Reply::Status(200),
    })
    .await
}

/// A client that is given up on after one timeout.
async fn subscribe(story: &Story, more: Value) -> String {
    let delivery = json!({"timeout": "100ms", "concurrency": 1, "retry": {"quantity": 1}});
    let mut body = json!({"endpoint": {"url": story.receiver.url("/told")}, "delivery": delivery});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    story.subscribe(body).await
}

async fn put(story: &Story, id: usize, quantity: i64) {
    story.api().put(&document_url(id), &json!({"rev": 1, "quantity": quantity})).await;
}

fn told(story: &Story, skip: usize) -> HashSet<String> {
    story.receiver.requests().iter().skip(skip).map(|request| request.document().to_owned()).collect()
}

async fn replayed(story: &Story, subscription: &str) {
    let begun = story.api().post(&format!("{subscription}/replay"), &json!({})).await.expect(202);
    let location = begun.header("location").to_owned();
    until("the replay is through", || async {
        let progress = story.api().get(&location).await.expect(200).json();
        (progress["state"] == "done").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_replay_ends_the_struggle_of_a_client_that_is_owed_nothing() {
    for setup in [Setup::default(), tiny()] {
        let story = Story::with(setup, hanging_at_first(2).await).await;
        let subscription = subscribe(&story, json!({})).await;
        for document in 0..2 {
            put(&story, document, 1).await;
        }
        story.until_status(&subscription, "both are given up", |s| s["feed"]["deadLetters"] == 2).await;
        replayed(&story, &subscription).await;
        assert_eq!(told(&story, 2).len(), 2);
    }
}

#[tokio::test]
async fn a_changed_filter_reaches_a_client_that_struggles_and_is_owed_nothing() {
    for setup in [Setup::default(), tiny()] {
        let story = Story::with(setup, hanging_at_first(1).await).await;
        let subscription = subscribe(&story, json!({"filter": "document.quantity > 0"})).await;
        put(&story, 0, 1).await;
        for document in 1..10 {
            put(&story, document, 0).await;
        }
        story.until_status(&subscription, "it is given up", |s| s["feed"]["deadLetters"] == 1).await;
        story.settled(&subscription).await;
        story.api().patch(&subscription, &json!({"filter": "true"})).await.expect(200);
        story.until_status(&subscription, "the others have entered", |s| s["feed"]["held"] == 9).await;
        assert_eq!(told(&story, 1).len(), 9);
    }
}

#[tokio::test]
async fn the_beginning_goes_on_after_all_that_it_had_handed_over_was_given_up() {
    for setup in [Setup::default().with("FLARE_DELIVERY_PAGE_ROWS", "1"), tiny()] {
        let story = Story::with(setup, hanging_at_first(1).await).await;
        for document in 0..20 {
            put(&story, document, 1).await;
        }
        let subscription = subscribe(&story, json!({"start": "beginning"})).await;
        let status = story.until_status(&subscription, "the rest arrived", |s| s["feed"]["held"] == 19).await;
        assert_eq!((&status["feed"]["deadLetters"], told(&story, 1).len()), (&json!(1), 19), "{status}");
    }
}

/// Each of these would keep two megabytes of documents that wait for a retry.
#[tokio::test]
async fn failing_clients_with_sweeps_do_not_fill_the_memory() {
    const CLIENTS: usize = 60;
    if !store_is_durable() {
        return;
    }
    let mut story = Story::with(Setup::default(), Receiver::answering(|_| Reply::Status(500)).await).await;
    let resource =
        json!({"endpoint": "http://origin.test/large/{id}", "change": {"field": "rev"}, "lanes": 1});
    let created = story.api().post("/resources", &resource).await.expect(201).json();
    let path = format!("/resources/{}/subscriptions", created["id"].as_str().expect("an id"));
    let text = "x".repeat(40_000);
    for document in 0..60 {
        let url = format!("http://origin.test/large/{document}");
        story.api().put(&url, &json!({"rev": 1, "text": text})).await;
    }
    // Nothing of it is in memory then, to be shared.
    story.flare.restart().await;
    let before = story.flare.resident_bytes() as f64;
    let mut subscriptions = Vec::new();
    for client in 0..CLIENTS {
        let url = story.receiver.url(&format!("/{client}"));
        let body = json!({"endpoint": {"url": url}, "start": "beginning", "delivery": {"concurrency": 1}});
        let created = story.api().post(&path, &body).await.expect(201);
        subscriptions.push(created.header("location").to_owned());
    }
    for subscription in &subscriptions {
        story.until_status(subscription, "it fails", |s| s["failed"].as_u64() > Some(5)).await;
    }
    let grown = (story.flare.resident_bytes() as f64 - before) / 1e6;
    assert!(grown < 60.0, "{grown} MB for {CLIENTS} clients");
}
