//! kill -9 in a loop under a client that pulls: nothing is lost, nothing goes back in time, and in the end the client
//! has what the origins said.
//!
//! FLARE_CRASH_ROUNDS and FLARE_CRASH_SEED as for the clients that are told.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::passively;
use crate::crashes::{Client, Dice, Shared, client, insist_on_what_was_accepted, origin};
use crate::support::{Api, Setup, store_is_durable, until, until_true};

/// One consumer. It takes some, makes of each what it can, and says so of most; sometimes it has some sent to its
/// endpoint instead. One thing after the other, so that what it hears is in order.
struct Consumer {
    api: watch::Receiver<Api>,
    path: String,
    client: Arc<Mutex<Client>>,
    dice: Dice,
}

impl Consumer {
    /// One turn. `None` when Flare was killed meanwhile; else how many were taken.
    async fn turn(&mut self) -> Option<usize> {
        let api = *self.api.borrow();
        if self.dice.roll(5) == 0 {
            let path = format!("{}/deliver?quantity=4", self.path);
            api.try_send("POST", &path, &[], "").await.ok()?.expect(200);
        }
        let lease = if self.dice.roll(4) == 0 { "150ms" } else { "5s" };
        let path = format!("{}/reserve?quantity=6&wait=200ms&lease={lease}", self.path);
        let answer = api.try_send("POST", &path, &[], "").await.ok()?.expect(200).json();
        let messages = answer["messages"].as_array().expect("a list").clone();
        for message in &messages {
            self.process(message);
        }
        let mut lines = Vec::new();
        for message in &messages {
            let status = match self.dice.roll(20) {
                0 => continue,
                1 => "release",
                _ => "success",
            };
            lines.push(json!({"lease": message["lease"], "status": status}));
        }
        if !lines.is_empty() {
            let body = json!({"messages": lines}).to_string();
            api.try_send("POST", &format!("{}/settle", self.path), &[], body).await.ok()?.expect(200);
        }
        Some(messages.len())
    }

    fn process(&self, message: &Value) {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let sequence = text(&message["headers"]["flare-sequence"][0]).parse().expect("a number");
        let revision = message["revision"].as_i64().expect("these are integers");
        let (document, id, action) =
            (text(&message["document"]), text(&message["id"]), text(&message["action"]));
        self.client.lock().unwrap().hears(&document, sequence, revision, &id, &action);
    }
}

#[tokio::test]
async fn a_client_that_pulls_loses_nothing_however_often_it_is_killed() {
    if !store_is_durable() {
        return eprintln!("SKIPPED: there is nothing to lose without a disk");
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("FLARE_CRASH_ROUNDS").unwrap_or(8);
    let seed = number("FLARE_CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    eprintln!("FLARE_CRASH_SEED={seed}");
    let mut dice = Dice(seed);
    let (receiver, told) = client(seed + 1, 10).await;
    let setup = Setup::default()
        .with("FLARE_DELIVERY_ISSUE_BLOCK", "16")
        .with("FLARE_DELIVERY_WINDOW", "32")
        .with("FLARE_DELIVERY_TAIL_BYTES", "64KB");
    let delivery = json!({"retry": {"quantity": 1_000_000, "interval": "20ms", "maxInterval": "100ms"}});
    let (mut story, subscription) = passively(setup, receiver, delivery).await;
    let (current, api) = watch::channel(story.api());
    let shared = Arc::new(Shared::default());
    let mut origins = tokio::task::JoinSet::new();
    for number in 0..3 {
        origins.spawn(origin(number, api.clone(), shared.clone(), Dice(seed + 10 + number)));
    }
    let mut consumer =
        Consumer { api: api.clone(), path: subscription.clone(), client: told.clone(), dice: Dice(seed + 2) };
    let (stop, stopped) = watch::channel(false);
    let consuming = tokio::spawn(async move {
        while !*stopped.borrow() {
            if consumer.turn().await.is_none() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        }
    });
    for _ in 0..rounds {
        let wanted = shared.count.load(Ordering::SeqCst) + 20 + dice.roll(120);
        until_true("the load goes on", || shared.count.load(Ordering::SeqCst) >= wanted).await;
        let before = shared.accepted.lock().unwrap().clone();
        story.flare.kill();
        story.receiver.drained().await;
        story.flare.restart().await;
        insist_on_what_was_accepted(story.api(), &before, &shared).await;
        current.send(story.api()).unwrap();
    }
    shared.stop.store(true, Ordering::SeqCst);
    while let Some(done) = origins.join_next().await {
        done.unwrap();
    }
    let accepted = shared.accepted.lock().unwrap().clone();
    let living = accepted.into_iter().filter(|(_, (_, lives))| *lives);
    let expected: HashMap<String, i64> = living.map(|(url, (revision, _))| (url, revision)).collect();
    until("the client has what the origins said", || {
        let client = told.lock().unwrap();
        assert!(client.wrong.is_empty(), "{:#?}", client.wrong);
        std::future::ready((client.state() == expected).then_some(()))
    })
    .await;
    let status = story.settled(&subscription).await;
    stop.send(true).unwrap();
    consuming.await.unwrap();
    assert_eq!(status["feed"]["deadLetters"], 0);
    assert_eq!(status["feed"]["held"], expected.len(), "what Flare believes is what the client has");
}
