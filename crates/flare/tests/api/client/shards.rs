//! Shards: several delivery threads serve one subscription, and their number changes while it works.

use std::collections::HashSet;
use std::time::Duration;

use flare_model::ids::lane_of;
use serde_json::json;

use crate::client::order::{insist_on_order, state_of};
use crate::support::{Gate, Receiver, Reply, Setup, Story, document_url, throughout, until_true};

fn four_threads() -> Setup {
    Setup::default().with("FLARE_DELIVERY_THREADS", "4")
}

fn slow(millis: u64) -> Reply {
    Reply::After(Duration::from_millis(millis), Box::new(Reply::Status(200)))
}

#[tokio::test]
async fn shards_are_bounded_by_lanes_concurrency_and_rate() {
    let story = Story::begin().await;
    let url = story.receiver.url("/told");
    let body = |shards: u32, delivery: serde_json::Value| json!({"endpoint": {"url": url}, "shards": shards, "delivery": delivery});
    let post = |body: serde_json::Value| {
        let (api, path) = (story.api(), story.subscriptions());
        async move { api.post(&path, &body).await }
    };
    post(body(0, json!({}))).await.refused(400, &["shards", "at least 1"]);
    post(body(9, json!({}))).await.refused(400, &["shards", "lanes", "8"]);
    post(body(3, json!({"concurrency": 2}))).await.refused(400, &["shards", "delivery.concurrency", "2"]);
    let rate = json!({"rateLimit": {"quantity": 2, "interval": "1s"}});
    post(body(3, rate)).await.refused(400, &["shards", "delivery.rateLimit.quantity", "2"]);
    let created = post(body(4, json!({}))).await.expect(201).json();
    assert_eq!(created["shards"], 4);
}

#[tokio::test]
async fn shards_share_out_the_concurrency() {
    let gate = Gate::closed();
    let held = gate.clone();
    let story = Story::with(four_threads(), Receiver::answering(move |_| held.then(slow(20))).await).await;
    let url = story.receiver.url("/told");
    let body =
        json!({"endpoint": {"url": url}, "shards": 3, "delivery": {"concurrency": 7, "timeout": "1m"}});
    let subscription = story.subscribe(body).await;
    for document in 0..100 {
        story.put(document, 1).await;
    }
    until_true("each has its share open", || story.receiver.in_flight() == 7).await;
    gate.open();
    let status = story.settled(&subscription).await;
    assert_eq!(story.receiver.count(), 100);
    assert_eq!((&status["delivered"], &status["feed"]["held"]), (&json!(100), &json!(100)));
    assert_eq!(story.receiver.most_in_flight(), 7);
}

#[tokio::test]
async fn shards_share_out_the_rate() {
    let story = Story::with(four_threads(), Receiver::start().await).await;
    let rate = json!({"quantity": 100, "interval": "1s", "burst": 4});
    let url = story.receiver.url("/told");
    let body = json!({"endpoint": {"url": url}, "shards": 4, "delivery": {"rateLimit": rate}});
    let subscription = story.subscribe(body).await;
    for document in 0..160 {
        story.put(document, 1).await;
    }
    story.settled(&subscription).await;
    let requests = story.receiver.requests();
    assert_eq!(requests.len(), 160);
    let steady = (requests[99].at - requests[0].at).as_secs_f64();
    assert!(steady > 0.85, "a hundred in {steady} s");
}

#[tokio::test]
async fn the_number_changes_while_it_works_and_nothing_is_lost_repeated_or_out_of_order() {
    let story = Story::with(four_threads(), Receiver::answering(|_| slow(2)).await).await;
    let subscription = story.subscribe_simply(json!({"concurrency": 12})).await;
    let (api, stop) = (story.api(), tokio_util::sync::CancellationToken::new());
    let origin = tokio::spawn({
        let stop = stop.clone();
        async move {
            let mut revision = 0;
            while !stop.is_cancelled() {
                revision += 1;
                for document in 0..20 {
                    api.put(&document_url(document), &json!({"rev": revision})).await;
                }
            }
            revision
        }
    });
    for shards in [4, 2, 8, 1, 3] {
        let patched = story.api().patch(&subscription, &json!({"shards": shards})).await.expect(200).json();
        assert_eq!(patched["shards"], shards);
        let words = format!("\"shards\":{shards}");
        until_true("it is served by so many", || story.flare.logged(&words).is_some()).await;
        let before = story.receiver.count();
        story.receiver.wait_for(before + 50).await;
    }
    stop.cancel();
    let revision: i64 = origin.await.unwrap();
    let status = story.settled(&subscription).await;
    let requests = story.receiver.requests();
    insist_on_order(&requests);
    let state = state_of(&requests);
    assert!(state.len() == 20 && state.values().all(|newest| *newest == revision), "{state:?}");
    let mut told = HashSet::new();
    for request in &requests {
        let change = (request.document().to_owned(), request.sequence());
        assert!(told.insert(change), "told twice: {} {}", request.document(), request.sequence());
    }
    assert_eq!(status["delivered"], requests.len());
}

#[tokio::test]
async fn a_subscription_that_is_paused_or_deleted_while_its_shards_change_stays_so() {
    let first = Gate::closed();
    let held = first.clone();
    let receiver = Receiver::answering(move |_| held.then(Reply::Status(200))).await;
    let story = Story::with(four_threads(), receiver).await;
    let subscription = story.subscribe_simply(json!({"concurrency": 4})).await;
    for document in 0..8 {
        story.put(document, 1).await;
    }
    story.receiver.wait_for(4).await;
    story.api().patch(&subscription, &json!({"shards": 4})).await.expect(200);
    story.command(&subscription, "pause").await.expect(200);
    first.open();
    let words = "another number of shards";
    until_true("it has moved", || story.flare.logged(words).is_some()).await;
    let status = story.until_status(&subscription, "idle", |status| status["feed"]["inFlight"] == 0).await;
    assert_eq!((&status["status"], &status["delivered"]), (&json!("paused"), &json!(4)));
    let before = story.receiver.count();
    let second = Gate::closed();
    let held = second.clone();
    story.receiver.answer(move |_| held.then(Reply::Status(200)));
    story.command(&subscription, "resume").await.expect(200);
    story.receiver.wait_for(before + 4).await;
    story.api().patch(&subscription, &json!({"shards": 2})).await.expect(200);
    story.api().delete(&subscription).await.expect(204);
    second.open();
    until_true("what was in flight is over", || story.receiver.in_flight() == 0).await;
    story.put(1, 2).await;
    let other = story.subscribe_simply(json!({})).await;
    story.put(2, 2).await;
    story.settled(&other).await;
    let late = story.receiver.requests().into_iter().filter(|request| request.revision() == 2).count();
    assert_eq!(late, 1, "only the other subscription is told");
}

#[tokio::test]
async fn a_filter_and_shards_that_change_together_under_load_create_nothing_twice() {
    let story = Story::with(four_threads(), Receiver::answering(|_| slow(2)).await).await;
    let url = story.receiver.url("/told");
    let body =
        json!({"endpoint": {"url": url}, "filter": "document.rev > 0", "delivery": {"concurrency": 8}});
    let subscription = story.subscribe(body).await;
    let writing = async {
        for revision in 1..=30 {
            for document in 0..20 {
                story.put(document, revision).await;
            }
        }
    };
    let changing = async {
        for round in 0..12 {
            let filter = if round % 2 == 0 { "document.rev >= 0" } else { "document.rev > 0" };
            story.api().patch(&subscription, &json!({"filter": filter})).await.expect(200);
            story.api().patch(&subscription, &json!({"shards": 1 + (round + 1) % 4})).await.expect(200);
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(writing, changing);
    story.settled(&subscription).await;
    let mut created = HashSet::new();
    for request in story.receiver.requests() {
        let first = request.action() != "create" || created.insert(request.document().to_owned());
        assert!(first, "{} at {} is created again", request.document(), request.sequence());
    }
    insist_on_order(&story.receiver.requests());
}

/// A client that hangs on the document with this number, and answers everything else.
async fn hanging_on(document: u32) -> Receiver {
    let url = document_url(document);
    Receiver::answering(move |request| match request.document() == url {
        true => Reply::Hang,
        false => Reply::Status(200),
    })
    .await
}

#[tokio::test]
async fn a_client_that_hangs_holds_up_only_itself_while_shards_and_modes_change() {
    let hanging = Receiver::answering(|_| Reply::Hang).await;
    let story = Story::with(four_threads(), Receiver::start().await).await;
    let delivery = json!({"timeout": "5m", "concurrency": 8});
    let endpoint = json!({"url": hanging.url("/")});
    let hangs = story.subscribe(json!({"endpoint": endpoint, "shards": 4, "delivery": delivery})).await;
    let endpoint = json!({"url": story.receiver.url("/active")});
    let active = story.subscribe(json!({"endpoint": endpoint, "shards": 4})).await;
    let endpoint = json!({"url": story.receiver.url("/pulled")});
    let pulled = story.subscribe(json!({"endpoint": endpoint, "shards": 4})).await;
    for document in 0..40 {
        story.put(document, 1).await;
    }
    until_true("it hangs", || hanging.in_flight() == 8).await;
    story.settled(&active).await;
    story.settled(&pulled).await;
    story.api().patch(&hangs, &json!({"shards": 1})).await.expect(200);
    story.api().patch(&active, &json!({"shards": 2})).await.expect(200);
    story.api().patch(&pulled, &json!({"mode": "passive"})).await.expect(200);
    for document in 0..40 {
        story.put(document, 2).await;
    }
    assert_eq!(story.settled(&active).await["delivered"], 80);
    let mut messages = Vec::new();
    while messages.len() < 40 {
        let path = format!("{pulled}/reserve?quantity=40&wait=20s");
        let answer = story.api().send("POST", &path, &[], "").await.expect(200).json();
        let more = answer["messages"].as_array().expect("a list").clone();
        assert!(!more.is_empty(), "{} of 40", messages.len());
        messages.extend(more);
    }
    assert_eq!(hanging.in_flight(), 8, "it still hangs");
}

#[tokio::test]
async fn an_attempt_that_hangs_holds_up_its_own_lane_while_shards_change() {
    let hangs = (0..).find(|id| lane_of(&document_url(id), 8) == 3).expect("some document is in each lane");
    let story = Story::with(four_threads(), hanging_on(hangs).await).await;
    let subscription = story.subscribe_simply(json!({"timeout": "5m"})).await;
    story.put(hangs, 1).await;
    story.receiver.wait_for(1).await;
    story.api().patch(&subscription, &json!({"shards": 4})).await.expect(200);
    let others: Vec<u32> = (0..60).filter(|id| lane_of(&document_url(id), 8) != 3).collect();
    for revision in 1..4 {
        for id in &others {
            story.put(id, revision).await;
        }
        let status = story.until_status(&subscription, "the others have it", |status| {
            status["feed"]["lagging"] == 1 && status["feed"]["inFlight"] == 1
        });
        assert_eq!(status.await["feed"]["held"], others.len());
    }
    insist_on_order(&story.receiver.requests());
    // Its lane is on its way; gone is gone all the same.
    story.api().delete(&subscription).await.expect(204);
}

#[tokio::test]
async fn a_concurrency_of_one_is_one_while_shards_change() {
    let story = Story::with(four_threads(), Receiver::answering(|_| slow(3)).await).await;
    let subscription = story.subscribe_simply(json!({"concurrency": 4})).await;
    story.api().patch(&subscription, &json!({"shards": 4})).await.expect(200);
    let (api, stop) = (story.api(), tokio_util::sync::CancellationToken::new());
    let origin = tokio::spawn({
        let stop = stop.clone();
        async move {
            let mut revision = 0;
            while !stop.is_cancelled() {
                revision += 1;
                for document in 0..20 {
                    api.put(&document_url(document), &json!({"rev": revision})).await;
                }
            }
        }
    });
    let words = |shards: u32| format!("\"shards\":{shards}");
    until_true("it has four", || story.flare.logged(&words(4)).is_some()).await;
    let before = story.receiver.count();
    story.receiver.wait_for(before + 40).await;
    let one = json!({"shards": 1, "delivery": {"concurrency": 1}});
    story.api().patch(&subscription, &one).await.expect(200);
    // What was open before ends as it began.
    until_true("one is open at most", || story.receiver.in_flight() <= 1).await;
    throughout(Duration::from_millis(300), "it stays so", || story.receiver.in_flight() <= 1).await;
    until_true("it has one", || story.flare.logged(&words(1)).is_some()).await;
    stop.cancel();
    origin.await.expect("no request panics");
    story.settled(&subscription).await;
    insist_on_order(&story.receiver.requests());
}
