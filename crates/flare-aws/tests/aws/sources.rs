//! Queues and streams of an emulator as sources, and the world outside of them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flare_model::bridge::{self, Concurrency, KinesisSource, SqsSource, StartAt};
use flare_model::duration::HumanDuration;
use flare_provider::bridge::{Bridge as _, Source};
use flare_provider::conformance::bridge::fixture::{LOOK, within};
use flare_provider::conformance::bridge::proxy::Proxy;
use flare_provider::conformance::bridge::{Server, SourceCan, SourceFactory, SourceSite};
use serde_json::{Value, json};

use crate::emulator::{Emulator, does, engine, fresh_name};

/// How long a message is hidden: short, and long enough for a machine that has much to do.
const VISIBILITY: Duration = Duration::from_secs(2);

pub struct FromSqs(pub Emulator);

pub struct FromKinesis(pub Emulator);

/// What is read, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    Queue(String),
    Stream(String),
}

impl Named {
    /// Makes a queue, or a stream, of an emulator.
    pub async fn make(address: &str, kind: Kind) -> Named {
        match kind {
            Kind::Queue | Kind::Fifo => {
                let (mut name, mut attributes) = (fresh_name(), json!({}));
                if kind == Kind::Fifo {
                    name.push_str(".fifo");
                    attributes["FifoQueue"] = "true".into();
                }
                does(address, "AmazonSQS.CreateQueue", json!({"QueueName": name, "Attributes": attributes}))
                    .await;
                Named::Queue(name)
            }
            Kind::Stream => {
                let name = fresh_name();
                does(address, "Kinesis_20131202.CreateStream", json!({"StreamName": name, "ShardCount": 1}))
                    .await;
                let asked = json!({"StreamName": name});
                let active = async {
                    loop {
                        let described =
                            does(address, "Kinesis_20131202.DescribeStreamSummary", asked.clone()).await;
                        if described["StreamDescriptionSummary"]["StreamStatus"] == "ACTIVE" {
                            return;
                        }
                        tokio::time::sleep(LOOK).await;
                    }
                };
                within(active, "the stream is made").await;
                Named::Stream(name)
            }
        }
    }

    pub fn source(&self, concurrency: Concurrency) -> bridge::Source {
        match self {
            Named::Queue(queue) => bridge::Source::Sqs(SqsSource {
                queue: queue.clone(),
                concurrency,
                visibility: HumanDuration(VISIBILITY),
                create: false,
            }),
            Named::Stream(stream) => bridge::Source::Kinesis(KinesisSource {
                stream: stream.clone(),
                start: StartAt::Beginning,
                create: false,
            }),
        }
    }

    /// Another one that was never made.
    pub fn nowhere(&self) -> Named {
        match self {
            Named::Queue(queue) => Named::Queue(format!("no-{queue}")),
            Named::Stream(stream) => Named::Stream(format!("no-{stream}")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Queue,
    Fifo,
    Stream,
}

/// The url by which an emulator knows a queue.
pub async fn url(address: &str, queue: &str) -> Value {
    does(address, "AmazonSQS.GetQueueUrl", json!({"QueueName": queue})).await["QueueUrl"].clone()
}

/// Sends at most ten messages, each with its group and number where the queue is a FIFO queue.
pub async fn send_ten(address: &str, queue: &str, messages: Vec<(&Bytes, Option<(&str, usize)>)>) {
    let entries = messages.into_iter().enumerate().map(|(id, (payload, group))| {
        let text = std::str::from_utf8(payload).expect("messages of SQS are text");
        let mut entry = json!({"Id": id.to_string(), "MessageBody": text});
        if let Some((group, number)) = group {
            entry["MessageGroupId"] = group.into();
            entry["MessageDeduplicationId"] = number.to_string().into();
        }
        entry
    });
    let entries: Vec<Value> = entries.collect();
    let count = entries.len();
    let input = json!({"QueueUrl": url(address, queue).await, "Entries": entries});
    let answer = does(address, "AmazonSQS.SendMessageBatch", input).await;
    assert_eq!(answer["Successful"].as_array().map(Vec::len), Some(count), "{answer}");
}

struct Site {
    address: &'static str,
    named: Named,
    concurrency: Concurrency,
    proxy: Proxy,
}

async fn fresh(emulator: Emulator, kind: Kind, server: Server) -> Option<Box<dyn SourceSite>> {
    let address = emulator.address().await?;
    // Neither has anything left when it is started again.
    if server == Server::Alone || emulator.cannot_show_this() {
        return None;
    }
    let named = Named::make(address, kind).await;
    let proxy = Proxy::before(address.to_owned()).await;
    let concurrency = match emulator {
        Emulator::Ministack => Concurrency::Auto,
        Emulator::Moto => Concurrency::Fixed(1),
    };
    Some(Box::new(Site { address, named, concurrency, proxy }))
}

#[async_trait]
impl SourceFactory for FromSqs {
    async fn fresh(&self, server: Server) -> Option<Box<dyn SourceSite>> {
        fresh(self.0, Kind::Queue, server).await
    }
}

#[async_trait]
impl SourceFactory for FromKinesis {
    async fn fresh(&self, server: Server) -> Option<Box<dyn SourceSite>> {
        fresh(self.0, Kind::Stream, server).await
    }
}

impl Site {
    fn of(&self, named: &Named) -> Arc<dyn Source> {
        let engine = engine(&self.proxy.addr().to_string(), "flare");
        engine.source("con_1", &named.source(self.concurrency)).expect("it has such sources")
    }
}

#[async_trait]
impl SourceSite for Site {
    async fn source(&self) -> Arc<dyn Source> {
        self.of(&self.named)
    }

    fn can(&self) -> SourceCan {
        match self.named {
            // Whoever has read a record and settles nothing holds nobody else up: it comes to others at once.
            Named::Stream(_) => {
                SourceCan { delay: false, lease: Some(Duration::from_secs(1)), text_only: false, lag: false }
            }
            Named::Queue(_) => SourceCan { delay: true, lease: Some(VISIBILITY), text_only: true, lag: true },
        }
    }

    async fn put(&self, payloads: Vec<Bytes>) {
        match &self.named {
            Named::Queue(queue) => {
                for ten in payloads.chunks(10) {
                    send_ten(self.address, queue, ten.iter().map(|payload| (payload, None)).collect()).await;
                }
            }
            Named::Stream(stream) => {
                for some in payloads.chunks(500) {
                    let records = some
                        .iter()
                        .map(|payload| json!({"Data": STANDARD.encode(payload), "PartitionKey": "key"}));
                    let input = json!({"StreamName": stream, "Records": records.collect::<Vec<Value>>()});
                    does(self.address, "Kinesis_20131202.PutRecords", input).await;
                }
            }
        }
    }

    async fn delete(&self) {
        match &self.named {
            Named::Queue(queue) => {
                let input = json!({"QueueUrl": url(self.address, queue).await});
                does(self.address, "AmazonSQS.DeleteQueue", input).await;
            }
            Named::Stream(stream) => {
                does(self.address, "Kinesis_20131202.DeleteStream", json!({"StreamName": stream})).await;
            }
        }
    }

    async fn nowhere(&self) -> Arc<dyn Source> {
        self.of(&self.named.nowhere())
    }

    async fn cut(&self) -> bool {
        self.proxy.cut();
        // A shard is read by one request after the other: a stream of it is not broken by this, and reads on.
        matches!(self.named, Named::Queue(_))
    }

    async fn set_away(&self, away: bool) -> bool {
        self.proxy.set_away(away);
        true
    }

    async fn restart(&self) -> bool {
        false
    }
}
