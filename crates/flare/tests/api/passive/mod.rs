//! Passive subscriptions: they get nothing until they ask, and then keep every promise.

mod deliver;
mod kill;
mod leases;
mod payload;
mod reserve;
mod restart;
mod settle;
mod stream;
mod turning;

use serde_json::{Value, json};

use crate::support::{Answer, Receiver, Setup, Story, until};

/// A story with a passive subscription whose endpoint is at `/told`.
pub async fn passive() -> (Story, String) {
    passively(Setup::default(), Receiver::start().await, json!({})).await
}

/// The same, with a Flare, a client and settings of delivery of one's own.
pub async fn passively(setup: Setup, receiver: Receiver, delivery: Value) -> (Story, String) {
    let story = Story::with(setup, receiver).await;
    let endpoint = json!({"url": story.receiver.url("/told")});
    let subscription =
        story.subscribe(json!({"endpoint": endpoint, "delivery": delivery, "mode": "passive"})).await;
    (story, subscription)
}

/// Reserves and returns the messages.
pub async fn reserve(story: &Story, subscription: &str, query: &str) -> Vec<Value> {
    let answer = story.command(subscription, &format!("reserve?{query}")).await.expect(200).json();
    answer["messages"].as_array().expect("a list").clone()
}

/// Reserves one message that has to come.
pub async fn reserve_one(story: &Story, subscription: &str, query: &str) -> Value {
    let mut messages = reserve(story, subscription, &format!("quantity=1&wait=20s&{query}")).await;
    assert_eq!(messages.len(), 1);
    messages.remove(0)
}

/// A reserve that waits.
pub struct Waiting(tokio::task::JoinHandle<Answer>);

impl Waiting {
    pub async fn answer(self) -> Answer {
        self.0.await.expect("no request panics")
    }
}

impl Waiting {
    /// Leaves without an answer.
    pub fn leave(self) {
        self.0.abort();
    }
}

/// Begins a reserve and sees that it waits, where only one may; also the refusal by which that is seen.
pub async fn until_it_waits(story: &Story, subscription: &str) -> (Waiting, Answer) {
    let (api, path) = (story.api(), format!("{subscription}/reserve?wait=60s"));
    let waiting = tokio::spawn(async move {
        loop {
            let answer = api.send("POST", &path, &[], "").await;
            // One that looks whether this one waits may have been there before it, for a moment.
            if answer.status != 429 {
                return answer;
            }
        }
    });
    let refused = until("it waits", || async {
        let answer = story.command(subscription, "reserve").await;
        (answer.status == 429).then_some(answer)
    })
    .await;
    (Waiting(waiting), refused)
}

/// Settles messages with one status and returns the outcomes.
pub async fn settle(story: &Story, subscription: &str, messages: &[Value], status: &str) -> Vec<String> {
    let lines = messages.iter().map(|message| json!({"lease": message["lease"], "status": status}));
    settle_with(story, subscription, lines.collect()).await
}

/// Settles and returns the outcomes.
pub async fn settle_with(story: &Story, subscription: &str, lines: Vec<Value>) -> Vec<String> {
    let path = format!("{subscription}/settle");
    let answer = story.api().post(&path, &json!({"messages": lines})).await.expect(200).json();
    let outcomes = answer["messages"].as_array().expect("a list").iter();
    outcomes.map(|line| line["outcome"].as_str().expect("a word").to_owned()).collect()
}

/// Document, action, revision and attempt of messages, in order of their documents.
pub fn told(messages: &[Value]) -> Vec<(String, String, i64, i64)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut told: Vec<_> = messages
        .iter()
        .map(|message| {
            let number = |name: &str| message[name].as_i64().expect("a number");
            (text(&message["document"]), text(&message["action"]), number("revision"), number("attempt"))
        })
        .collect();
    told.sort();
    told
}
