//! The end of a process and the beginning of the next: what is in flight is finished and recorded, and nothing that was
//! known is forgotten.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{
    Gate, Receiver, Reply, Setup, Story, document_url, store_is_durable, throughout, until, until_true,
};

fn slow() -> Reply {
    Reply::After(Duration::from_millis(500), Box::new(Reply::Status(200)))
}

#[tokio::test]
async fn a_stop_finishes_what_is_in_flight_and_nothing_is_sent_again() {
    if !store_is_durable() {
        return;
    }
    let gate = Gate::closed();
    let held = gate.clone();
    let receiver = Receiver::answering(move |_| held.then(slow())).await;
    let mut story = Story::told(receiver).await;
    let subscription = story.subscribe_simply(json!({})).await;
    for document in 0..5 {
        story.put(document, 1).await;
    }
    until_true("all are in flight", || story.receiver.in_flight() == 5).await;
    story.flare.signal("TERM");
    until("it stops", || std::future::ready(story.flare.logged("stopping"))).await;
    gate.open();
    assert_eq!(story.flare.ended().await.code(), Some(0));
    assert_eq!((story.receiver.count(), story.receiver.in_flight()), (5, 0), "each was answered");
    story.flare.restart().await;
    let status = story.settled(&subscription).await;
    assert_eq!((&status["feed"]["held"], &status["delivered"]), (&5.into(), &5.into()));
    story.put(1, 2).await;
    story.settled(&subscription).await;
    let requests = story.receiver.requests();
    assert_eq!(requests.len(), 6, "nothing was sent again");
    assert_eq!((requests[5].action(), requests[5].revision()), ("update", 2));
}

#[tokio::test]
async fn a_stop_begins_no_further_attempt() {
    let gate = Gate::closed();
    let held = gate.clone();
    let receiver = Receiver::answering(move |_| held.then(slow())).await;
    let mut story = Story::told(receiver).await;
    story.subscribe_simply(json!({"concurrency": 2})).await;
    for document in 0..10 {
        story.put(document, 1).await;
    }
    until_true("two are in flight", || story.receiver.in_flight() == 2).await;
    story.flare.signal("INT");
    until("it stops", || std::future::ready(story.flare.logged("stopping"))).await;
    gate.open();
    assert_eq!(story.flare.ended().await.code(), Some(0));
    // The threads hear of the stop when the API has ended, a moment after it is said.
    assert!(story.receiver.count() <= 4, "{} instead of two", story.receiver.count());
}

#[tokio::test]
async fn a_second_signal_is_immediate() {
    for (first, second, code) in [("TERM", "TERM", 143), ("INT", "INT", 130), ("TERM", "INT", 130)] {
        let mut story = Story::told(Receiver::answering(|_| Reply::Hang).await).await;
        story.subscribe_simply(json!({"timeout": "60s"})).await;
        story.put(1, 1).await;
        until_true("it hangs", || story.receiver.in_flight() == 1).await;
        story.flare.signal(first);
        until("it stops", || std::future::ready(story.flare.logged("stopping"))).await;
        let began = Instant::now();
        story.flare.signal(second);
        assert_eq!(story.flare.ended().await.code(), Some(code));
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

#[tokio::test]
async fn an_idle_connection_of_an_origin_does_not_hold_up_the_stop() {
    let mut story = Story::begin().await;
    let _idle = tokio::net::TcpStream::connect(story.flare.addr()).await.unwrap();
    let began = Instant::now();
    assert_eq!(story.flare.stop().await.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_client_that_does_not_go_on_holds_up_the_stop_for_no_longer_than_the_grace() {
    let line = json!({"id": document_url(1), "document": {"rev": 1}}).to_string();
    let put = format!("PUT /documents/{} HTTP/1.1", document_url(2));
    let get = format!("GET /documents/{} HTTP/1.1\r\nhost: localhost\r\n\r\n", document_url("large"));
    let half = "host: localhost\r\ncontent-length: 100000\r\n\r\n";
    for (request, answered) in [
        (format!("{put}\r\nhost: localhost\r\nx-half"), false),
        // It is told to go on once its body is waited for.
        (format!("{put}\r\nexpect: 100-continue\r\n{half}{{"), true),
        (format!("POST /documents HTTP/1.1\r\n{half}{line}\n{{"), true),
        // Sixteen megabytes that nobody reads: more than sockets hold.
        (get, true),
    ] {
        let setup = Setup::default()
            .with("FLARE_HTTP_SERVER_GRACE", "200ms")
            .with("FLARE_HTTP_SERVER_BODY_LIMIT", "20MB");
        let mut story = Story::with(setup, Receiver::start().await).await;
        if request.contains("large") {
            let large = json!({"rev": 1, "x": "x".repeat(16_000_000)});
            story.api().put(&document_url("large"), &large).await;
        }
        let mut stream = tokio::net::TcpStream::connect(story.flare.addr()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        if answered {
            stream.read_exact(&mut [0; 12]).await.unwrap();
        }
        let began = Instant::now();
        assert_eq!(story.flare.stop().await.code(), Some(0));
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}: {request:.100}", began.elapsed());
        // Of a head alone nobody can tell whether it was read before the stop.
        if answered {
            until("it is said", || std::future::ready(story.flare.logged("http.server.grace"))).await;
        }
    }
}

#[tokio::test]
async fn a_test_that_hangs_does_not_hold_up_the_stop() {
    let mut story = Story::told(Receiver::answering(|_| Reply::Hang).await).await;
    let subscription = story.subscribe_simply(json!({"timeout": "60s"})).await;
    let (api, path) = (story.api(), format!("{subscription}/test"));
    let test = tokio::spawn(async move { api.post(&path, &json!({})).await });
    until_true("it hangs", || story.receiver.in_flight() == 1).await;
    let began = Instant::now();
    assert_eq!(story.flare.stop().await.code(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    test.await.unwrap().refused(503, &["stopping"]);
}

#[tokio::test]
async fn everything_that_was_known_is_known_after_a_restart() {
    if !store_is_durable() {
        return;
    }
    let answer = |request: &crate::support::Request| match request.path.as_str() {
        "/refuses" => Reply::Status(500),
        _ => Reply::Status(200),
    };
    let mut story = Story::told(Receiver::answering(answer).await).await;
    let healthy = story.subscribe_simply(json!({"concurrency": 3})).await;
    let refuses =
        json!({"endpoint": {"url": story.receiver.url("/refuses")}, "delivery": {"retry": {"quantity": 1}}});
    let refuses = story.subscribe(refuses).await;
    let paused = story.subscribe(json!({"endpoint": {"url": story.receiver.url("/paused")}})).await;
    story.command(&paused, "pause").await.expect(200);
    story.put(1, 1).await;
    story.put(2, 1).await;
    story.remove(2).await;
    story.settled(&healthy).await;
    story
        .until_status(&refuses, "given up", |s| {
            let feed = &s["feed"];
            feed["deadLetters"] != 0 && feed["lagging"] == 0 && feed["inFlight"] == 0
        })
        .await;
    let paths = [
        "/resources".to_owned(),
        story.subscriptions(),
        format!("{healthy}/status"),
        format!("{refuses}/dead-letters"),
        format!("/documents/{}", document_url(1)),
    ];
    // Each life has an address of its own, by which the node is named here, and another epoch.
    let known = |mut said: serde_json::Value| {
        if let Some(said) = said.as_object_mut() {
            ["node", "shards"].iter().for_each(|of_this_life| drop(said.remove(*of_this_life)));
        }
        said
    };
    let mut before = Vec::new();
    for path in &paths {
        before.push(known(story.api().get(path).await.expect(200).json()));
    }
    let sent = story.receiver.count();
    for how in ["TERM", "KILL"] {
        if how == "TERM" {
            assert_eq!(story.flare.stop().await.code(), Some(0));
        }
        story.flare.restart().await;
        for (path, before) in paths.iter().zip(&before) {
            let mut now = known(story.api().get(path).await.expect(200).json());
            if let Some(subscriptions) = now.get_mut("subscriptions").and_then(|list| list.as_array_mut()) {
                assert_eq!(subscriptions[2]["status"], "paused");
            }
            assert_eq!(now, *before, "{path} after {how}");
        }
        story.api().get(&format!("/documents/{}", document_url(2))).await.expect(404);
        assert_eq!(story.put(2, 1).await, "unchanged", "the tombstone is there");
    }
    throughout(Duration::from_millis(100), "nothing is sent again", || story.receiver.count() == sent).await;
    story.command(&paused, "resume").await.expect(200);
    story.settled(&paused).await;
    assert_eq!(
        story.receiver.requests()[sent..].iter().map(|r| r.path.as_str()).collect::<Vec<_>>(),
        ["/paused"]
    );
}

#[tokio::test]
async fn a_retry_that_waits_goes_on_in_the_next_process() {
    if !store_is_durable() {
        return;
    }
    let mut story = Story::told(Receiver::answering(|_| Reply::Status(503)).await).await;
    let delivery = json!({"retry": {"interval": "300ms", "maxInterval": "300ms"}});
    let subscription = story.subscribe_simply(delivery).await;
    story.put(1, 1).await;
    story.until_status(&subscription, "it waits", |s| s["feed"]["waiting"] == 1).await;
    assert_eq!(story.flare.stop().await.code(), Some(0));
    // A slow machine may have come to a second attempt.
    let before = story.receiver.count();
    story.receiver.answer(|_| Reply::Status(200));
    story.flare.restart().await;
    story.settled(&subscription).await;
    let requests = story.receiver.requests();
    assert_eq!(requests.len(), before + 1);
    assert_eq!(requests[0].header("webhook-id"), requests[before].header("webhook-id"), "the same one");
    assert_eq!(requests[before].action(), "create");
}

#[tokio::test]
async fn a_replay_and_a_beginning_go_on_in_the_next_process() {
    if !store_is_durable() {
        return;
    }
    let mut story = Story::told(Receiver::answering(|_| slow()).await).await;
    for document in 0..20 {
        story.put(document, 1).await;
    }
    let endpoint = json!({"url": story.receiver.url("/told")});
    let body = json!({"endpoint": endpoint, "delivery": {"concurrency": 2}, "start": "beginning"});
    let subscription = story.subscribe(body).await;
    story.receiver.wait_for(3).await;
    story.flare.restart().await;
    story.receiver.answer(|_| Reply::Status(200));
    story
        .until_status(&subscription, "it is active", |s| s["status"] == "active" && s["feed"]["lagging"] == 0)
        .await;
    assert_eq!(crate::client::order::state_of(&story.receiver.requests()).len(), 20);
    let before = story.receiver.count();
    story.receiver.answer(|_| slow());
    let replay = story.command(&subscription, "replay").await.expect(202);
    story.receiver.wait_for(before + 2).await;
    story.flare.restart().await;
    story.receiver.answer(|_| Reply::Status(200));
    until("the replay is through", || async {
        let progress = story.api().get(replay.header("location")).await.expect(200).json();
        (progress["state"] == "done").then_some(())
    })
    .await;
    story.settled(&subscription).await;
    let requests = story.receiver.requests().split_off(before);
    let replayed: std::collections::HashSet<_> = requests
        .iter()
        .filter(|r| r.header("flare-replay") == replay.json()["id"])
        .map(|r| r.document())
        .collect();
    assert_eq!(replayed.len(), 20);
}
