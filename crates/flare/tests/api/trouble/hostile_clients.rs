//! Clients that hang, reset, trickle, talk nonsense or talk for ever: each costs only itself.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{PATIENCE, Receiver, Reply, Story, until_true};

/// A client that answers so; returns its failure as the status shows it, and insists that a later good answer is taken.
async fn failure_of(reply: Reply, delivery: serde_json::Value) -> serde_json::Value {
    let story = Story::told(Receiver::answering(move |_| reply.clone()).await).await;
    let subscription = story.subscribe_simply(delivery).await;
    story.put(1, 1).await;
    let status = story.until_status(&subscription, "it failed", |status| status["failed"] != 0).await;
    story.receiver.answer(|_| Reply::Status(200));
    let settled = story.settled(&subscription).await;
    assert_eq!((&settled["delivered"], &settled["feed"]["held"]), (&1.into(), &1.into()));
    let requests = story.receiver.requests();
    assert!(requests.iter().all(|request| request.action() == "create"), "a create in doubt stays one");
    status["lastFailure"].clone()
}

fn quick() -> serde_json::Value {
    json!({"retry": {"interval": "20ms", "maxInterval": "20ms"}})
}

/// The same for one that does not answer.
fn hasty() -> serde_json::Value {
    json!({"timeout": "500ms", "retry": {"interval": "20ms", "maxInterval": "20ms"}})
}

#[tokio::test]
async fn a_client_that_hangs_is_given_up_on_after_the_timeout() {
    let failure = failure_of(Reply::Hang, hasty()).await;
    assert!(failure["error"].as_str().unwrap().contains("no answer within 500ms"), "{failure}");
}

#[tokio::test]
async fn a_client_that_trickles_its_answer_has_no_longer_than_the_timeout() {
    let failure = failure_of(Reply::Trickle, hasty()).await;
    assert!(failure["error"].as_str().unwrap().contains("500ms"), "{failure}");
}

#[tokio::test]
async fn a_client_that_resets_is_tried_again() {
    let failure = failure_of(Reply::Reset, quick()).await;
    assert!(failure["error"].as_str().unwrap().contains("connection"), "{failure}");
}

#[tokio::test]
async fn an_answer_that_is_not_http_is_a_failure() {
    for garbage in
        [&b"\x00\x01\x02 nonsense\r\n\r\n"[..], b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 abc\r\n\r\n", b""]
    {
        let failure = failure_of(Reply::Bytes(garbage.to_vec()), quick()).await;
        assert!(failure["status"].is_null() && failure["error"].is_string(), "{failure}");
    }
}

#[tokio::test]
async fn an_answer_that_ends_in_the_middle_is_a_failure() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of it".to_vec();
    let failure = failure_of(Reply::Bytes(cut), quick()).await;
    assert!(failure["error"].is_string(), "{failure}");
    let failure = failure_of(Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-le".to_vec()), quick()).await;
    assert!(failure["error"].is_string(), "{failure}");
}

#[tokio::test]
async fn a_head_that_never_ends_is_a_failure() {
    let mut endless = b"HTTP/1.1 200 OK\r\n".to_vec();
    for number in 0..10_000 {
        endless.extend_from_slice(format!("x-{number}: {}\r\n", "x".repeat(100)).as_bytes());
    }
    let failure = failure_of(Reply::Bytes(endless), quick()).await;
    assert!(failure["error"].is_string(), "{failure}");
}

#[tokio::test]
async fn an_answer_of_a_gigabyte_is_not_read_to_its_end() {
    let story = Story::told(Receiver::answering(|_| Reply::Flood).await).await;
    let subscription = story.subscribe_simply(json!({"timeout": "20s"})).await;
    let began = Instant::now();
    story.put(1, 1).await;
    let status = story.settled(&subscription).await;
    assert_eq!(
        (&status["delivered"], &status["failed"]),
        (&1.into(), &0.into()),
        "its status is an answer all the same"
    );
    assert!(began.elapsed() < Duration::from_secs(15));
    story.put(2, 1).await;
    story.settled(&subscription).await;
    assert_eq!(story.receiver.connections(), 2, "such a connection is not used again");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = Receiver::start().await;
        let headers = vec![("location", elsewhere.url("/there"))];
        let failure = failure_of(Reply::Full { status, headers, body: String::new() }, quick()).await;
        assert_eq!(failure["status"], status);
        assert_eq!(elsewhere.count(), 0);
    }
}

#[tokio::test]
async fn informational_answers_are_waited_through() {
    let early = b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec();
    let story = Story::told(Receiver::answering(move |_| Reply::Bytes(early.clone())).await).await;
    let subscription = story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    let status = story.settled(&subscription).await;
    assert_eq!((&status["delivered"], &status["failed"]), (&1.into(), &0.into()));
}

#[tokio::test]
async fn twenty_clients_that_hang_do_not_slow_a_healthy_one() {
    let story = Story::begin().await;
    let mut hanging = Vec::new();
    for _ in 0..20 {
        let receiver = Receiver::answering(|_| Reply::Hang).await;
        let endpoint = json!({"url": receiver.url("/"), "method": "post"});
        story
            .subscribe(json!({"endpoint": endpoint, "delivery": {"timeout": "5m", "concurrency": 10}}))
            .await;
        hanging.push(receiver);
    }
    let healthy = story.subscribe_simply(json!({})).await;
    story.put("first", 1).await;
    until_true("all of them hang", || hanging.iter().all(|receiver| receiver.in_flight() > 0)).await;
    story.settled(&healthy).await;
    let began = Instant::now();
    for document in 0..100 {
        let before = story.receiver.count();
        story.put(document, 1).await;
        story.receiver.wait_for(before + 1).await;
    }
    // Each alone takes about a millisecond; one that waited for a hanging one would take minutes.
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_client_that_hangs_takes_one_slot_and_goes_on_when_it_wakes() {
    let story = Story::told(Receiver::answering(|_| Reply::Hang).await).await;
    let delivery =
        json!({"timeout": "150ms", "concurrency": 10, "retry": {"interval": "50ms", "maxInterval": "50ms"}});
    let subscription = story.subscribe_simply(delivery).await;
    for document in 0..50 {
        story.put(document, 1).await;
    }
    until_true("the first ones have timed out", || story.receiver.count() >= 11).await;
    until_true("one probe at a time", || story.receiver.in_flight() <= 1).await;
    story.receiver.answer(|_| Reply::Status(200));
    let status = story.settled(&subscription).await;
    assert_eq!((&status["delivered"], &status["feed"]["held"]), (&50.into(), &50.into()));
}
