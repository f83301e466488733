//! kill -9 in a loop under a client that pulls: nothing is lost, nothing goes back in time, and in the end the client
//! has what the origins said.
//!
//! FLARE_CRASH_ROUNDS and FLARE_CRASH_SEED as for the clients that are told.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::passively;
use crate::support::{Setup, store_is_durable, until};
use crate::trouble::crashes::{Client, Dice, Door, Load, client, rounds_and_seed};

/// One consumer. It takes some, makes of each what it can, and says so of most; sometimes it has some sent to its
/// endpoint instead. One thing after the other, so that what it hears is in order.
struct Consumer {
    door: Door,
    path: String,
    client: Arc<Mutex<Client>>,
    dice: Dice,
}

impl Consumer {
    /// One turn. `None` when Flare was killed meanwhile.
    async fn turn(&mut self) -> Option<()> {
        let api = self.door.api().await;
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
        Some(())
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
    let (rounds, seed) = rounds_and_seed();
    let (receiver, told) = client(seed + 1, 10).await;
    let setup = Setup::default()
        .with("FLARE_DELIVERY_ISSUE_BLOCK", "16")
        .with("FLARE_DELIVERY_WINDOW", "32")
        .with("FLARE_DELIVERY_TAIL_BYTES", "64KB");
    let delivery = json!({"retry": {"quantity": 1_000_000, "interval": "20ms", "maxInterval": "100ms"}});
    let (mut story, subscription) = passively(setup, receiver, delivery).await;
    let mut load = Load::begin(&story, 3, seed);
    let (door, path, dice) = (load.door(), subscription.clone(), Dice(seed + 2));
    let mut consumer = Consumer { door, path, client: told.clone(), dice };
    let (stop, stopped) = watch::channel(false);
    let consuming = tokio::spawn(async move {
        while !*stopped.borrow() {
            consumer.turn().await;
        }
    });
    for _ in 0..rounds {
        load.goes_on(120).await;
        load.kill(&mut story, &[]).await;
    }
    let (expected, _) = load.end().await;
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
