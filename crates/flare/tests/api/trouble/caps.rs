//! Caps: a number is that number, however many delivery threads there are, and nobody is shut out by those who have
//! theirs.

use std::time::Duration;

use flare_model::ids::lane_of;
use serde_json::json;

use crate::support::{Gate, Receiver, Reply, Setup, Story, document_url, throughout, until, until_true};

fn slow(millis: u64) -> Reply {
    Reply::After(Duration::from_millis(millis), Box::new(Reply::Status(200)))
}

fn four_threads() -> Setup {
    Setup::default().with("FLARE_DELIVERY_THREADS", "4")
}

/// PUTs documents with these ids, all in one request.
async fn put_all(story: &Story, ids: impl Iterator<Item = u32>, revision: u32) {
    let line = |id| json!({"id": document_url(id), "document": {"rev": revision}}).to_string();
    let lines: Vec<String> = ids.map(line).collect();
    story.api().send("POST", "/documents", &[], lines.join("\n")).await.expect(200);
}

#[tokio::test]
async fn as_many_busy_hosts_as_connections_do_not_shut_out_another() {
    for threads in ["1", "3"] {
        busy_hosts_take_turns(threads).await;
    }
}

async fn busy_hosts_take_turns(threads: &str) {
    let setup = Setup::default()
        .with("FLARE_HTTP_CLIENT_CONNECTIONS", "2")
        .with("FLARE_HTTP_CLIENT_CONNECTIONS_PER_HOST", "2")
        .with("FLARE_DELIVERY_THREADS", threads);
    let story = Story::with(setup, Receiver::start().await).await;
    let busy = [Receiver::answering(|_| slow(5)).await, Receiver::answering(|_| slow(5)).await];
    let mut subscriptions = Vec::new();
    for receiver in &busy {
        let endpoint = json!({"url": receiver.url("/")});
        subscriptions
            .push(story.subscribe(json!({"endpoint": endpoint, "delivery": {"concurrency": 4}})).await);
    }
    put_all(&story, 0..4_000, 1).await;
    until_true("both are at work", || busy.iter().all(|receiver| receiver.count() > 0)).await;
    // It joins those who take turns, and leaves them something.
    let other = story.subscribe_simply(json!({})).await;
    put_all(&story, 0..20, 2).await;
    story.settled(&other).await;
    assert_eq!(story.receiver.count(), 20);
    for (subscription, receiver) in subscriptions.iter().zip(&busy) {
        assert!(story.status(subscription).await["feed"]["lagging"].as_u64() > Some(0), "it is still busy");
        let before = receiver.count();
        receiver.wait_for(before + 50).await;
    }
}

#[tokio::test]
async fn a_host_has_one_connection_where_one_is_allowed_whatever_the_threads() {
    let setup = four_threads().with("FLARE_HTTP_CLIENT_CONNECTIONS_PER_HOST", "1");
    let story = Story::with(setup, Receiver::answering(|_| slow(1)).await).await;
    let mut subscriptions = Vec::new();
    for number in 0..8 {
        let url = story.receiver.url(&format!("/{number}"));
        subscriptions.push(story.subscribe(json!({"endpoint": {"url": url}})).await);
    }
    put_all(&story, 0..20, 1).await;
    for subscription in &subscriptions {
        story.settled(subscription).await;
    }
    assert_eq!(story.receiver.count(), 160);
    assert_eq!(story.receiver.most_in_flight(), 1);
}

#[tokio::test]
async fn an_idle_connection_of_one_thread_makes_way_for_another() {
    let setup = four_threads()
        .with("FLARE_HTTP_CLIENT_CONNECTIONS", "1")
        .with("FLARE_HTTP_CLIENT_CONNECTIONS_PER_HOST", "1");
    let story = Story::with(setup, Receiver::start().await).await;
    let others = [Receiver::start().await, Receiver::start().await, Receiver::start().await];
    let mut subscriptions = vec![story.subscribe_simply(json!({})).await];
    for receiver in &others {
        subscriptions.push(story.subscribe(json!({"endpoint": {"url": receiver.url("/")}})).await);
    }
    for revision in 1..6 {
        story.put(1, revision).await;
        for subscription in &subscriptions {
            story.settled(subscription).await;
        }
    }
    assert_eq!(story.receiver.requests().last().map(|request| request.revision()), Some(5));
}

#[tokio::test]
async fn a_concurrency_is_that_number_with_work_in_one_lane_or_in_all() {
    let gate = Gate::closed();
    let held = gate.clone();
    let story = Story::with(four_threads(), Receiver::answering(move |_| held.then(slow(1))).await).await;
    let delivery = json!({"concurrency": 30, "timeout": "1m"});
    let endpoint = json!({"url": story.receiver.url("/told")});
    let body = json!({"endpoint": endpoint, "shards": 4, "delivery": delivery});
    let subscription = story.subscribe(body).await;
    let first_lane = (0..).filter(|id| lane_of(&document_url(id), 8) == 0);
    put_all(&story, first_lane.take(50), 1).await;
    until_true("one lane has all of it", || story.receiver.in_flight() == 30).await;
    put_all(&story, 0..200, 2).await;
    let told = Duration::from_millis(100);
    throughout(told, "the others get no more", || story.receiver.in_flight() == 30).await;
    gate.open();
    story.settled(&subscription).await;
    let gate = Gate::closed();
    let held = gate.clone();
    story.receiver.answer(move |_| held.then(slow(1)));
    put_all(&story, 0..200, 3).await;
    until_true("all lanes have it together", || story.receiver.in_flight() == 30).await;
    story.api().patch(&subscription, &json!({"delivery": {"concurrency": 40}})).await.expect(200);
    until_true("more are allowed", || story.receiver.in_flight() == 40).await;
    gate.open();
    story.settled(&subscription).await;
    assert_eq!(story.receiver.most_in_flight(), 40);
}

#[tokio::test]
async fn hosts_that_nobody_sends_to_any_more_are_forgotten() {
    let story = Story::with(four_threads(), Receiver::start().await).await;
    let stays = story.subscribe_simply(json!({})).await;
    let mut others = Vec::new();
    for port in 0..20 {
        let url = format!("http://127.0.0.1:{}/", 1 + port);
        others.push(story.subscribe(json!({"endpoint": {"url": url}, "delivery": {"timeout": "1s"}})).await);
    }
    let moved = story.subscribe(json!({"endpoint": {"url": "http://127.0.0.1:30/"}})).await;
    story.put(1, 1).await;
    story.settled(&stays).await;
    let there = until("they are counted", || async {
        let hosts = hosts(&story).await;
        (hosts >= 22).then_some(hosts)
    });
    assert_eq!(there.await, 22);
    for subscription in others {
        story.api().delete(&subscription).await.expect(204);
    }
    let elsewhere = json!({"endpoint": {"url": story.receiver.url("/moved")}});
    story.api().patch(&moved, &elsewhere).await.expect(200);
    // The one that is left may be there once for each of two threads.
    until("they are gone", || async { (hosts(&story).await <= 2).then_some(()) }).await;
    story.put(1, 2).await;
    story.settled(&stays).await;
    story.settled(&moved).await;
}

/// How many hosts the threads know.
async fn hosts(story: &Story) -> u64 {
    let metrics = story.api().get("/metrics").await.expect(200);
    let metrics = String::from_utf8_lossy(&metrics.body);
    let line =
        metrics.lines().find_map(|line| line.strip_prefix("flare_hosts ")).expect("the gauge is there");
    line.parse::<f64>().expect("a number") as u64
}

#[tokio::test]
async fn no_host_is_forgotten_where_all_of_them_share_few_connections() {
    for (threads, connections) in [("1", "1"), ("2", "1"), ("2", "3"), ("4", "2")] {
        let setup = Setup::default()
            .with("FLARE_DELIVERY_THREADS", threads)
            .with("FLARE_HTTP_CLIENT_CONNECTIONS", connections)
            .with("FLARE_HTTP_CLIENT_CONNECTIONS_PER_HOST", "1");
        let story = Story::with(setup, Receiver::start().await).await;
        let mut receivers = Vec::new();
        let mut subscriptions = Vec::new();
        for _ in 0..3 {
            // What is created goes elsewhere than what is updated, so that hosts hand work to each other.
            let (creates, updates) = (Receiver::start().await, Receiver::start().await);
            let actions = json!({"create": {"url": creates.url("/")}});
            let endpoint = json!({"url": updates.url("/"), "actions": actions});
            let delivery = json!({"concurrency": 4});
            subscriptions.push(
                story.subscribe(json!({"endpoint": endpoint, "shards": 2, "delivery": delivery})).await,
            );
            receivers.extend([creates, updates]);
        }
        for revision in 1..8 {
            put_all(&story, 0..40, revision).await;
            for subscription in &subscriptions {
                story.settled(subscription).await;
            }
        }
    }
}
