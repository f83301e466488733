//! The world outside of the engine: streams that tests make, fill, read and delete by a connection of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_nats::Client;
use bytes::Bytes;
use flare_model::bridge::{NatsSource, StartAt};
use flare_nats::{Nats, Options};
use flare_provider::conformance::bridge::Server as Use;
use flare_provider::conformance::bridge::proxy::Proxy;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::server::{Held, Server, server};

/// What is given out and not kept comes again after this.
pub const LEASE: Duration = Duration::from_secs(2);

/// A stream on the server, and a way to it that can be broken.
pub struct Site {
    pub server: Arc<Server>,
    _held: Held,
    pub proxy: Proxy,
    pub stream: String,
}

impl Site {
    /// One with a stream of its own, which has the subjects `<stream>.>`.
    pub async fn new(usage: Use) -> Option<Site> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (server, held) = server(usage).await?;
        let proxy = Proxy::before(server.address.clone()).await;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let stream = format!("test-{}-{number}", std::process::id());
        let site = Site { server, _held: held, proxy, stream };
        site.make().await;
        Some(site)
    }

    /// Makes the stream.
    pub async fn make(&self) {
        let config = json!({
            "name": self.stream, "subjects": [format!("{}.>", self.stream)], "storage": "file", "retention": "limits",
            "max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_age": 0, "num_replicas": 1, "discard": "old",
        });
        self.api(&format!("STREAM.CREATE.{}", self.stream), &config).await;
    }

    /// A process of Flare's, by the way that can be broken.
    pub fn engine(&self) -> Nats {
        self.engine_of("test")
    }

    /// The same for a cluster of this name.
    pub fn engine_of(&self, owner: &str) -> Nats {
        let options = Options {
            url: self.server.url(&self.proxy.addr().to_string()),
            credentials: None,
            ca: None,
            owner: owner.to_owned(),
            timeout: Duration::from_secs(2),
            lease: LEASE,
        };
        Nats::new(options).expect("the url is right")
    }

    pub fn settings(&self, stream: &str) -> NatsSource {
        NatsSource { stream: stream.to_owned(), subject: None, durable: None, start: StartAt::Beginning }
    }

    /// A client that goes to the server directly.
    pub async fn direct(&self) -> Client {
        async_nats::connect(self.server.url(&self.server.address)).await.expect("it answers")
    }

    /// Asks JetStream, which has to answer well.
    pub async fn api(&self, operation: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.direct().await.request(format!("$JS.API.{operation}"), body.into()).await;
        let answer: Value = serde_json::from_slice(&answer.expect("it answers").payload).expect("it is JSON");
        assert!(answer.get("error").is_none(), "{answer}");
        answer
    }

    pub async fn put(&self, payloads: Vec<Bytes>) {
        let client = self.direct().await;
        for payload in payloads {
            let stored = client.request(format!("{}.in", self.stream), payload).await.expect("it is stored");
            let stored: Value = serde_json::from_slice(&stored.payload).expect("it is JSON");
            assert!(stored["seq"].is_u64(), "{stored}");
        }
    }

    pub async fn delete(&self) {
        self.api(&format!("STREAM.DELETE.{}", self.stream), &Value::Null).await;
    }

    /// All that the stream has, in its order, as messages with subject and headers.
    pub async fn contents(&self) -> Vec<async_nats::Message> {
        let client = self.direct().await;
        let info = self.api(&format!("STREAM.INFO.{}", self.stream), &Value::Null).await;
        let count = info["state"]["messages"].as_u64().unwrap_or_default() as usize;
        if count == 0 {
            return Vec::new();
        }
        let config =
            json!({"ack_policy": "none", "deliver_policy": "all", "inactive_threshold": 5_000_000_000_u64});
        let made = json!({"stream_name": self.stream, "config": config});
        let made = self.api(&format!("CONSUMER.CREATE.{}", self.stream), &made).await;
        let name = made["name"].as_str().expect("it has a name");
        let inbox = client.new_inbox();
        let mut subscriber = client.subscribe(inbox.clone()).await.expect("it listens");
        let next = format!("$JS.API.CONSUMER.MSG.NEXT.{}.{name}", self.stream);
        let question = json!({"batch": count, "no_wait": true}).to_string();
        client.publish_with_reply(next, inbox, question.into()).await.expect("it is asked");
        let mut contents = Vec::new();
        while contents.len() < count {
            let message = subscriber.next().await.expect("it goes on");
            if message.status.is_some_and(|status| status.as_u16() >= 400) {
                break;
            }
            contents.push(message);
        }
        contents
    }
}
