//! The plan of a retry policy is what happens, also to a client that fails again and again.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Gate, Receiver, Reply, Story, document_url, until_true};

async fn failing() -> Story {
    Story::told(Receiver::answering(|_| Reply::Status(500)).await).await
}

/// When the last attempt of a policy is planned, after the first.
async fn simulated(story: &Story, retry: &Value) -> Value {
    let plan = story.api().post("/retry/simulate", retry).await.expect(200).json();
    plan["givesUp"]["after"].clone()
}

/// How long it took from the first request to the last, of a document that was given up after so many.
async fn took(story: &Story, retry: &Value, attempts: usize) -> Duration {
    let subscription = story.subscribe_simply(json!({"retry": retry})).await;
    story.put(1, 1).await;
    story.until_status(&subscription, "it is given up", |status| status["feed"]["deadLetters"] == 1).await;
    let requests = story.receiver.requests();
    assert_eq!(requests.len(), attempts);
    requests[attempts - 1].at - requests[0].at
}

#[tokio::test]
async fn twenty_attempts_take_as_long_as_was_simulated() {
    let story = failing().await;
    let retry = json!({"interval": "100ms", "quantity": 20, "progression": "linear", "ratio": 1});
    assert_eq!(simulated(&story, &retry).await, "1.9s");
    let took = took(&story, &retry, 20).await;
    // Jitter takes a tenth of it at most.
    assert!(took > Duration::from_millis(1_700) && took < Duration::from_millis(3_800), "{took:?}");
}

#[tokio::test]
async fn immediate_retries_are_immediate() {
    let story = failing().await;
    let retry = json!({"immediate": 9, "quantity": 10});
    assert_eq!(simulated(&story, &retry).await, "0s");
    let took = took(&story, &retry, 10).await;
    assert!(took < Duration::from_millis(500), "{took:?}");
}

#[tokio::test]
async fn fifty_requests_that_fail_together_are_one_failure() {
    let gate = Gate::closed();
    let story = Story::begin().await;
    let held = gate.clone();
    story.receiver.answer(move |_| held.then(Reply::Status(500)));
    let retry = json!({"interval": "1s"});
    let subscription = story.subscribe_simply(json!({"concurrency": 50, "retry": retry})).await;
    for document in 0..50 {
        story.put(document, 1).await;
    }
    until_true("all of them are open", || story.receiver.in_flight() == 50).await;
    gate.open();
    let status = story.until_status(&subscription, "all failed", |status| status["failed"] == 50).await;
    assert!(status["throttle"].is_null(), "{status}");
    let back = Instant::now();
    story.receiver.answer(|_| Reply::Status(200));
    story.settled(&subscription).await;
    let requests = story.receiver.requests();
    assert_eq!(requests.len(), 100, "each was tried twice");
    // The first retry is due a second after the failure, the last a tenth later.
    let first = requests[50].at.saturating_duration_since(back);
    let last = requests[99].at.saturating_duration_since(back);
    assert!(first < Duration::from_secs(2) && last < Duration::from_secs(4), "{first:?} to {last:?}");
}

#[tokio::test]
async fn a_client_that_is_back_is_found_by_the_next_retry_that_is_due() {
    let story = failing().await;
    let retry = json!({"interval": "200ms", "maxInterval": "200ms", "quantity": 10_000});
    let subscription = story.subscribe_simply(json!({"concurrency": 20, "retry": retry})).await;
    for document in 0..20 {
        story.put(document, 1).await;
    }
    let failed = |status: &Value| status["failed"].as_u64() >= Some(100);
    let status = story.until_status(&subscription, "it fails again and again", failed).await;
    assert!(status["throttle"]["since"].is_string(), "{status}");
    let before = story.receiver.count();
    let back = Instant::now();
    story.receiver.answer(|_| Reply::Status(200));
    let status = story.settled(&subscription).await;
    assert!(status["throttle"].is_null(), "{status}");
    let found = story.receiver.requests()[before].at.saturating_duration_since(back);
    // Of twenty documents one is due at every hundredth of a second or so.
    assert!(found < Duration::from_millis(800), "{found:?}");
    assert!(back.elapsed() < Duration::from_secs(5), "{:?}", back.elapsed());
}

#[tokio::test]
async fn a_client_that_is_asked_one_thing_at_a_time_is_shown_so_with_when_and_since() {
    let story = failing().await;
    let retry = json!({"immediate": 5, "interval": "1h", "maxInterval": "1h"});
    let subscription = story.subscribe_simply(json!({"retry": retry})).await;
    story.put(1, 1).await;
    let status = story.until_status(&subscription, "six failed", |status| status["failed"] == 6).await;
    let throttle = &status["throttle"];
    let since = throttle["since"].as_str().expect("it is asked one thing at a time");
    let next = throttle["nextAt"].as_str().expect("a retry is due in an hour");
    assert!(next > since, "{throttle}");
    let id = subscription.rsplit('/').next().expect("an id");
    let path = format!("/explain?subscription={id}&document={}", document_url(1));
    let explained = story.api().get(&path).await.expect(200).json();
    let facts = explained["facts"].as_array().expect("facts");
    let fact = facts.iter().find(|fact| fact["fact"] == "breaker").expect("it fails");
    let detail = fact["detail"].as_str().expect("words");
    let words = [format!("one request at a time since {since}"), format!("the next at {next}")];
    assert!(words.iter().all(|words| detail.contains(words)), "{detail}");
    story.receiver.answer(|_| Reply::Status(200));
    story.api().post(&format!("{subscription}/replay"), &json!({})).await.expect(202);
    story.until_status(&subscription, "one success ends it", |status| status["throttle"].is_null()).await;
}

#[tokio::test]
async fn what_was_not_tried_yet_comes_after_gaps_that_the_interval_of_the_policy_bounds() {
    let story = failing().await;
    let retry = json!({"interval": "200ms", "maxInterval": "1h", "ratio": 1000});
    let subscription = story.subscribe_simply(json!({"concurrency": 1, "retry": retry})).await;
    // As many as may wait for a retry while nothing succeeds.
    for document in 0..15 {
        story.put(document, 1).await;
    }
    let firsts = || {
        let mut tried = std::collections::HashSet::new();
        let requests = story.receiver.requests().into_iter();
        let firsts = requests.filter(|request| tried.insert(request.header("flare-document").to_owned()));
        firsts.map(|request| request.at).collect::<Vec<Instant>>()
    };
    until_true("all were tried", || firsts().len() == 15).await;
    let firsts = firsts();
    let status = story.status(&subscription).await;
    assert!(status["throttle"]["since"].is_string(), "{status}");
    // Without that bound the last would be five seconds; some slack is for a busy machine.
    let longest = firsts.windows(2).map(|two| two[1] - two[0]).max().unwrap();
    assert!(longest < Duration::from_millis(1_500), "{longest:?}");
}
