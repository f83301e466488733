//! Concurrency and rate: what a subscription asks for is kept.

use std::time::Duration;

use serde_json::json;

use crate::support::{Receiver, Reply, Request, Story, document_url, store_is_durable};

fn slow(millis: u64) -> Reply {
    Reply::After(Duration::from_millis(millis), Box::new(Reply::Status(200)))
}

#[tokio::test]
async fn no_more_requests_are_open_than_the_concurrency_allows() {
    let story = Story::told(Receiver::answering(|_| slow(20)).await).await;
    let subscription = story.subscribe_simply(json!({"concurrency": 3})).await;
    for document in 0..30 {
        story.put(document, 1).await;
    }
    story.settled(&subscription).await;
    assert_eq!(story.receiver.most_in_flight(), 3);
    assert_eq!(story.receiver.count(), 30);
}

#[tokio::test]
async fn a_changed_concurrency_counts_from_then_on() {
    let story = Story::told(Receiver::answering(|_| slow(20)).await).await;
    let subscription = story.subscribe_simply(json!({"concurrency": 1})).await;
    for document in 0..5 {
        story.put(document, 1).await;
    }
    story.settled(&subscription).await;
    assert_eq!(story.receiver.most_in_flight(), 1);
    story.api().patch(&subscription, &json!({"delivery": {"concurrency": 4}})).await.expect(200);
    for document in 0..40 {
        story.put(document, 2).await;
    }
    story.settled(&subscription).await;
    assert_eq!(story.receiver.most_in_flight(), 4);
}

#[tokio::test]
async fn no_more_requests_begin_than_the_rate_allows() {
    let story = Story::begin().await;
    let rate = json!({"quantity": 10, "interval": "100ms"});
    let subscription = story.subscribe_simply(json!({"rateLimit": rate})).await;
    for document in 0..60 {
        story.put(document, 1).await;
    }
    story.settled(&subscription).await;
    let requests = story.receiver.requests();
    assert_eq!(requests.len(), 60);
    never_more_than(&requests, 1.0, 100.0);
}

/// In any stretch of time there come no more than the bucket holds and earns meanwhile.
fn never_more_than(requests: &[Request], burst: f64, per_second: f64) {
    for (first, start) in requests.iter().enumerate() {
        for (count, end) in requests[first..].iter().enumerate() {
            let earned = (end.at - start.at).as_secs_f64() * per_second;
            // Some slack: arrival is seen later than the beginning.
            let slack = 2.0 + per_second * 0.03;
            assert!(count as f64 <= burst + earned + slack, "{count} in {:?}", end.at - start.at);
        }
    }
}

#[tokio::test]
async fn a_rate_is_kept_over_a_restart_and_nearly_used_up() {
    let mut story = Story::begin().await;
    let rate = json!({"quantity": 100, "interval": "1s"});
    let subscription = story.subscribe_simply(json!({"rateLimit": rate})).await;
    for document in 0..300 {
        story.put(document, 1).await;
    }
    story.receiver.wait_for(120).await;
    assert!(story.flare.stop().await.success());
    if !store_is_durable() {
        return;
    }
    story.flare.restart().await;
    story.settled(&subscription).await;
    let requests = story.receiver.requests();
    assert_eq!(requests.len(), 300);
    never_more_than(&requests, 10.0, 100.0);
    let steady = (requests[100].at - requests[0].at).as_secs_f64();
    assert!((0.88..1.3).contains(&steady), "a hundred in {steady} s");
}

#[tokio::test]
async fn a_hundred_a_second_is_a_hundred_a_second_over_ten_seconds() {
    let story = Story::begin().await;
    let rate = json!({"quantity": 100, "interval": "1s"});
    let subscription = story.subscribe_simply(json!({"rateLimit": rate})).await;
    // All of it waits before the first is sent, so that the rate is what holds it back and not the origin.
    story.command(&subscription, "pause").await.expect(200);
    let line = |id: u32| json!({"id": document_url(id), "document": {"rev": 1}}).to_string();
    let lines: Vec<String> = (0..1_100).map(line).collect();
    story.api().send("POST", "/documents", &[], lines.join("\n")).await.expect(200);
    story.command(&subscription, "resume").await.expect(200);
    let requests = story.receiver.wait_for(1_080).await;
    never_more_than(&requests, 10.0, 100.0);
    // Not from the first one on: the bucket was full then.
    let from = requests[30].at;
    let count = requests.iter().filter(|r| r.at > from && r.at <= from + Duration::from_secs(10)).count();
    assert!((950..=1_020).contains(&count), "{count} in ten seconds");
}

#[tokio::test]
async fn connections_to_one_host_are_capped_over_all_its_subscriptions() {
    let setup = crate::support::Setup::default()
        .with("FLARE_HTTP_CLIENT_CONNECTIONS_PER_HOST", "4")
        .with("FLARE_DELIVERY_THREADS", "2");
    let story = Story::with(setup, Receiver::answering(|_| slow(10)).await).await;
    let mut subscriptions = Vec::new();
    for number in 0..4 {
        let url = story.receiver.url(&format!("/{number}"));
        subscriptions.push(story.subscribe(json!({"endpoint": {"url": url}})).await);
    }
    for document in 0..20 {
        story.put(document, 1).await;
    }
    for subscription in &subscriptions {
        story.settled(subscription).await;
    }
    assert_eq!(story.receiver.count(), 80);
    assert!(story.receiver.most_in_flight() <= 4, "{}", story.receiver.most_in_flight());
}
