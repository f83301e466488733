//! What a client's answer means: delivered, discarded, gone, or to be tried again, and when.

use std::time::Duration;

use serde_json::json;

use crate::support::{Receiver, Reply, Request, Story, throughout, until_true};

/// Answers 503 to the first `failures` requests, and 200 to the rest.
fn failing(failures: usize) -> impl FnMut(&Request) -> Reply + Send + 'static {
    let mut seen = 0;
    move |_| {
        seen += 1;
        Reply::Status(if seen <= failures { 503 } else { 200 })
    }
}

fn gaps(requests: &[Request]) -> Vec<Duration> {
    requests.windows(2).map(|pair| pair[1].at - pair[0].at).collect()
}

#[tokio::test]
async fn a_failed_notification_is_sent_again_under_the_same_id() {
    let story = Story::told(Receiver::answering(failing(3)).await).await;
    let subscription =
        story.subscribe_simply(json!({"retry": {"interval": "20ms", "maxInterval": "20ms"}})).await;
    story.put(1, 1).await;
    let status = story.settled(&subscription).await;
    let requests = story.receiver.requests();
    assert_eq!(requests.len(), 4);
    for request in &requests {
        assert_eq!(request.header("webhook-id"), requests[0].header("webhook-id"));
        assert_eq!((request.action(), request.revision()), ("create", 1));
    }
    assert_eq!((&status["failed"], &status["delivered"]), (&3.into(), &1.into()));
    assert_eq!(status["lastFailure"]["status"], 503);
    story.put(1, 2).await;
    let next = story.receiver.wait_for(5).await.remove(4);
    assert_ne!(next.header("webhook-id"), requests[0].header("webhook-id"));
    assert_eq!(next.action(), "update");
}

#[tokio::test]
async fn a_client_that_is_not_there_yet_gets_it_when_it_comes() {
    let (nobody, addr) = crate::trouble::dead_hosts::nobody();
    let story = Story::begin().await;
    let retry = json!({"interval": "50ms", "maxInterval": "50ms"});
    let endpoint = json!({"url": format!("http://{addr}/told")});
    let subscription = story.subscribe(json!({"endpoint": endpoint, "delivery": {"retry": retry}})).await;
    story.put(1, 1).await;
    let status = story.until_status(&subscription, "it failed", |status| status["failed"] != 0).await;
    assert!(status["lastFailure"]["error"].as_str().unwrap().contains("connect"), "{status}");
    let receiver = Receiver::on(nobody.listen(64).unwrap(), |_| Reply::Status(200));
    story.settled(&subscription).await;
    assert_eq!(receiver.requests()[0].action(), "create");
}

#[tokio::test]
async fn retries_go_through_their_phases() {
    let story = Story::told(Receiver::answering(failing(4)).await).await;
    let retry = json!({"immediate": 1, "preBackoff": 1, "interval": "1s", "progression": "geometric", "ratio": 3,
        "maxInterval": "3s"});
    let subscription = story.subscribe_simply(json!({"retry": retry})).await;
    story.put(1, 1).await;
    story.settled(&subscription).await;
    let gaps = gaps(&story.receiver.requests());
    assert_eq!(gaps.len(), 4);
    // Immediate, preBackoff after one second, backoff after one and three; each with a tenth of jitter. Above there is
    // only a bound against a wrong order of magnitude: the machine may be busy.
    for (gap, (least, most)) in gaps.iter().zip([(0, 890), (890, 2600), (890, 2600), (2690, 8000)]) {
        let millis = gap.as_millis();
        assert!((least..most).contains(&millis), "{gaps:?}");
    }
}

#[tokio::test]
async fn a_client_that_asks_to_wait_is_left_alone_for_that_long() {
    for status in [429, 503] {
        let mut first = true;
        let receiver = Receiver::answering(move |_| match std::mem::take(&mut first) {
            true => Reply::Full { status, headers: vec![("Retry-After", "1".into())], body: String::new() },
            false => Reply::Status(200),
        });
        let story = Story::told(receiver.await).await;
        story.subscribe_simply(json!({"retry": {"interval": "10ms"}})).await;
        story.put(1, 1).await;
        let gap = gaps(&story.receiver.wait_for(2).await)[0];
        assert!(gap >= Duration::from_millis(990), "{status}: {gap:?}");
    }
}

#[tokio::test]
async fn a_client_that_asks_to_wait_for_long_is_asked_again_after_the_longest_interval() {
    let mut first = true;
    let receiver = Receiver::answering(move |_| match std::mem::take(&mut first) {
        true => {
            Reply::Full { status: 503, headers: vec![("Retry-After", "86400".into())], body: String::new() }
        }
        false => Reply::Status(200),
    });
    let story = Story::told(receiver.await).await;
    story.subscribe_simply(json!({"retry": {"interval": "10ms", "maxInterval": "300ms"}})).await;
    story.put(1, 1).await;
    let gap = gaps(&story.receiver.wait_for(2).await)[0];
    assert!((290..5000).contains(&gap.as_millis()), "{gap:?}");
}

#[tokio::test]
async fn only_listed_statuses_mean_delivered() {
    let mut answers = [200, 204, 201, 202].into_iter();
    let story =
        Story::told(Receiver::answering(move |_| Reply::Status(answers.next().unwrap_or(202))).await).await;
    let delivery = json!({"success": [202], "retry": {"interval": "10ms", "maxInterval": "10ms"}});
    let subscription = story.subscribe_simply(delivery).await;
    story.put(1, 1).await;
    let status = story.settled(&subscription).await;
    assert_eq!((&status["failed"], &status["delivered"]), (&3.into(), &1.into()));
}

#[tokio::test]
async fn a_discarded_notification_is_dropped_and_changes_nothing_held() {
    let mut answers = [500, 500].into_iter();
    let story =
        Story::told(Receiver::answering(move |_| Reply::Status(answers.next().unwrap_or(200))).await).await;
    let subscription = story.subscribe_simply(json!({"discard": [500]})).await;
    story.put(1, 1).await;
    let status = story.settled(&subscription).await;
    assert_eq!((&status["discarded"], &status["feed"]["held"]), (&1.into(), &0.into()));
    story.put(1, 2).await;
    let status = story.settled(&subscription).await;
    assert_eq!((&status["discarded"], &status["feed"]["deadLetters"]), (&2.into(), &0.into()));
    story.put(1, 3).await;
    story.settled(&subscription).await;
    let told: Vec<_> =
        story.receiver.requests().iter().map(|r| (r.action().to_owned(), r.revision())).collect();
    assert_eq!(told, [("create".into(), 1), ("create".into(), 2), ("create".into(), 3)]);
}

#[tokio::test]
async fn a_client_that_is_gone_is_disabled_at_once_and_can_be_resumed() {
    let story = Story::told(Receiver::answering(|_| Reply::Status(410)).await).await;
    let subscription =
        story.subscribe_simply(json!({"retry": {"interval": "10ms", "maxInterval": "10ms"}})).await;
    story.put(1, 1).await;
    let status =
        story.until_status(&subscription, "it is disabled", |status| status["status"] == "disabled").await;
    assert!(status["reason"].as_str().unwrap().contains("410"), "{status}");
    let shown = story.api().get(&subscription).await.expect(200).json();
    assert_eq!((&shown["status"], &shown["reason"]), (&"disabled".into(), &status["reason"]));
    story.put(1, 2).await;
    story.put(2, 1).await;
    throughout(Duration::from_millis(200), "nothing is sent", || story.receiver.count() == 1).await;
    story.receiver.answer(|_| Reply::Status(200));
    let resumed = story.command(&subscription, "resume").await.expect(200).json();
    assert_eq!(resumed["status"], "active");
    story.settled(&subscription).await;
    let mut told: Vec<_> =
        story.receiver.requests()[1..].iter().map(|r| (r.document().to_owned(), r.revision())).collect();
    told.sort();
    assert_eq!(told, [(crate::support::document_url(1), 2), (crate::support::document_url(2), 1)]);
}

#[tokio::test]
async fn gone_is_no_reason_to_disable_where_it_has_another_meaning() {
    let story = Story::told(Receiver::answering(|_| Reply::Status(410)).await).await;
    let retry = json!({"quantity": 1});
    let url = |path: &str| json!({"url": story.receiver.url(path)});
    let listed = story.subscribe(json!({"endpoint": url("/success"), "delivery": {"success": [410]}})).await;
    let discarded =
        story.subscribe(json!({"endpoint": url("/discard"), "delivery": {"discard": [410]}})).await;
    let wildcard = story.subscribe(json!({"endpoint": url("/{id}"), "delivery": {"retry": retry}})).await;
    story.put(1, 1).await;
    let status = story.settled(&listed).await;
    assert_eq!((&status["status"], &status["delivered"]), (&"active".into(), &1.into()));
    let status = story.settled(&discarded).await;
    assert_eq!((&status["status"], &status["discarded"]), (&"active".into(), &1.into()));
    let status = story.until_status(&wildcard, "given up", |s| s["feed"]["deadLetters"] == 1).await;
    assert_eq!(status["status"], "failing", "nothing has succeeded yet, and it is not disabled");
}

#[tokio::test]
async fn a_delete_that_finds_it_gone_does_not_disable() {
    let answer = |request: &Request| Reply::Status(if request.action() == "delete" { 410 } else { 200 });
    let story = Story::told(Receiver::answering(answer).await).await;
    let subscription = story.subscribe_simply(json!({"retry": {"quantity": 1}})).await;
    story.put(1, 1).await;
    story.settled(&subscription).await;
    story.remove(1).await;
    let status = story.until_status(&subscription, "given up", |s| s["feed"]["deadLetters"] == 1).await;
    assert_eq!(status["status"], "active");
}

#[tokio::test]
async fn a_client_without_success_for_long_is_failing_until_one() {
    let setup = crate::support::Setup::default().with("FLARE_DELIVERY_FAILING_AFTER", "100ms");
    let story = Story::with(setup, Receiver::answering(|_| Reply::Status(500)).await).await;
    let subscription =
        story.subscribe_simply(json!({"retry": {"interval": "30ms", "maxInterval": "30ms"}})).await;
    story.put(1, 1).await;
    let status = story.until_status(&subscription, "it is failing", |s| s["status"] == "failing").await;
    assert!(status["reason"].as_str().unwrap().contains("500"), "{status}");
    story.receiver.answer(|_| Reply::Status(200));
    story.until_status(&subscription, "it is active", |s| s["status"] == "active").await;
    until_true("it was delivered", || story.receiver.count() > 1).await;
}
