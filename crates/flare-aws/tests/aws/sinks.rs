//! Queues and streams of an emulator as sinks, and the world at the other end of them.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flare_model::bridge::{self, KinesisTarget, SqsTarget};
use flare_provider::bridge::{Bridge as _, Sink};
use flare_provider::conformance::bridge::proxy::Proxy;
use flare_provider::conformance::bridge::{Arrived, Server, SinkCan, SinkFactory, SinkSite};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::emulator::{Emulator, does, engine};
use crate::sources::{Kind, Named, url};

pub struct ToSqs(pub Emulator);

pub struct ToFifo(pub Emulator);

pub struct ToKinesis(pub Emulator);

struct Site {
    address: &'static str,
    named: Named,
    kind: Kind,
    proxy: Proxy,
    /// What was taken out of the queue.
    taken: Mutex<Vec<Arrived>>,
}

async fn fresh(emulator: Emulator, kind: Kind, server: Server) -> Option<Box<dyn SinkSite>> {
    let address = emulator.address().await?;
    // Neither has anything left when it is started again.
    if server == Server::Alone || emulator.cannot_show_this() {
        return None;
    }
    let named = Named::make(address, kind).await;
    let proxy = Proxy::before(address.to_owned()).await;
    Some(Box::new(Site { address, named, kind, proxy, taken: Mutex::default() }))
}

#[async_trait]
impl SinkFactory for ToSqs {
    async fn fresh(&self, server: Server) -> Option<Box<dyn SinkSite>> {
        fresh(self.0, Kind::Queue, server).await
    }
}

#[async_trait]
impl SinkFactory for ToFifo {
    async fn fresh(&self, server: Server) -> Option<Box<dyn SinkSite>> {
        fresh(self.0, Kind::Fifo, server).await
    }
}

#[async_trait]
impl SinkFactory for ToKinesis {
    async fn fresh(&self, server: Server) -> Option<Box<dyn SinkSite>> {
        fresh(self.0, Kind::Stream, server).await
    }
}

impl Named {
    fn target(&self) -> bridge::Target {
        match self {
            Named::Queue(queue) => bridge::Target::Sqs(SqsTarget { queue: queue.clone() }),
            Named::Stream(stream) => bridge::Target::Kinesis(KinesisTarget { stream: stream.clone() }),
        }
    }
}

impl Site {
    fn to(&self, named: &Named) -> Arc<dyn Sink> {
        let engine = engine(&self.proxy.addr().to_string(), "flare");
        engine.sink(&named.target()).expect("it has such sinks")
    }

    /// Takes out of the queue what is there, in its order.
    async fn take(&self, queue: &str) -> Vec<Arrived> {
        let mut taken = self.taken.lock().await;
        let url = url(self.address, queue).await;
        loop {
            let input = json!({
                "QueueUrl": url,
                "MaxNumberOfMessages": 10,
                "VisibilityTimeout": 60,
                "MessageAttributeNames": ["All"],
                "MessageSystemAttributeNames": ["All"],
            });
            let answer = does(self.address, "AmazonSQS.ReceiveMessage", input).await;
            let messages = answer["Messages"].as_array().cloned().unwrap_or_default();
            if messages.is_empty() {
                return taken.clone();
            }
            taken.extend(messages.iter().map(arrived));
            let entries = messages.iter().enumerate().map(
                |(id, message)| json!({"Id": id.to_string(), "ReceiptHandle": message["ReceiptHandle"]}),
            );
            let input = json!({"QueueUrl": url, "Entries": entries.collect::<Vec<Value>>()});
            does(self.address, "AmazonSQS.DeleteMessageBatch", input).await;
        }
    }

    async fn records(&self, stream: &str) -> Vec<Arrived> {
        let input = json!({
            "StreamName": stream,
            "ShardId": "shardId-000000000000",
            "ShardIteratorType": "TRIM_HORIZON",
        });
        let mut iterator =
            does(self.address, "Kinesis_20131202.GetShardIterator", input).await["ShardIterator"].clone();
        let mut all = Vec::new();
        loop {
            let answer =
                does(self.address, "Kinesis_20131202.GetRecords", json!({"ShardIterator": iterator})).await;
            let records = answer["Records"].as_array().cloned().unwrap_or_default();
            if records.is_empty() {
                return all;
            }
            all.extend(records.iter().map(|record| Arrived {
                key: record["PartitionKey"].as_str().map(str::to_owned),
                body: STANDARD.decode(record["Data"].as_str().expect("data")).expect("base64").into(),
                ..Arrived::default()
            }));
            iterator = answer["NextShardIterator"].clone();
        }
    }
}

fn arrived(message: &Value) -> Arrived {
    let attributes = message["MessageAttributes"].as_object().cloned().unwrap_or_default();
    let value = |value: &Value| value["StringValue"].as_str().expect("a text").to_owned();
    Arrived {
        id: attributes.get("webhook-id").map(value),
        key: message["Attributes"]["MessageGroupId"].as_str().map(str::to_owned),
        headers: attributes.iter().map(|(name, of)| (name.clone(), value(of))).collect(),
        body: Bytes::from(message["Body"].as_str().expect("a text").to_owned()),
    }
}

#[async_trait]
impl SinkSite for Site {
    async fn sink(&self) -> Arc<dyn Sink> {
        self.to(&self.named)
    }

    fn can(&self) -> SinkCan {
        let queue = self.kind != Kind::Stream;
        SinkCan {
            ids: queue,
            headers: queue,
            text_only: queue,
            ordered: self.kind != Kind::Queue,
            keys: self.kind != Kind::Queue,
        }
    }

    async fn named(&self) -> Option<Arc<dyn Sink>> {
        None
    }

    fn leads_nowhere(&self) -> Option<String> {
        None
    }

    async fn nowhere(&self) -> Arc<dyn Sink> {
        self.to(&self.named.nowhere())
    }

    async fn arrived(&self) -> Vec<Arrived> {
        match &self.named {
            Named::Queue(queue) => self.take(queue).await,
            Named::Stream(stream) => self.records(stream).await,
        }
    }

    async fn cut(&self) -> bool {
        self.proxy.cut();
        true
    }

    async fn set_away(&self, away: bool) -> bool {
        self.proxy.set_away(away);
        true
    }

    async fn restart(&self) -> bool {
        false
    }
}
