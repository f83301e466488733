//! The world outside of Flare: a queue, or what comes near to it, on every broker, filled and read by connections that share nothing with
//! Flare's engines; and the binary, told where the brokers are.

use std::collections::BTreeMap;
use std::process::{Command, Output, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flare_provider::conformance::bridge::Server;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

use crate::emulator::{Emulator, does, fresh_name};
use crate::support::{Api, Flare, Setup, until};
use crate::{nats, rabbitmq};

/// Where messages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Rabbit,
    Nats,
    Sqs,
    Fifo,
    Kinesis,
}

pub const KINDS: [Kind; 5] = [Kind::Rabbit, Kind::Nats, Kind::Sqs, Kind::Fifo, Kind::Kinesis];

/// Whose turn it is: one of these tests starts brokers again, and the others use them more than once.
pub async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// One of each kind.
pub struct World {
    pub rabbit: rabbitmq::outside::Site,
    pub nats: nats::outside::Site,
    aws: &'static str,
    names: BTreeMap<Kind, String>,
    data: TempDir,
    /// How long messages of SQS are hidden: usually longer than any test waits.
    pub visibility: &'static str,
}

impl World {
    /// Nothing: this machine lacks one of the brokers, which was said.
    pub async fn new(usage: Server) -> Option<World> {
        let aws = Emulator::Ministack.address().await?;
        let rabbit = rabbitmq::outside::Site::without_queue(usage, true).await?;
        let nats = nats::outside::Site::new(usage).await?;
        let fifo = format!("{}.fifo", fresh_name());
        let names = [
            (Kind::Rabbit, rabbit.queue.clone()),
            (Kind::Nats, nats.stream.clone()),
            (Kind::Sqs, fresh_name()),
            (Kind::Fifo, fifo),
            (Kind::Kinesis, fresh_name()),
        ];
        let data = tempfile::tempdir().expect("a directory for the data");
        Some(World { rabbit, nats, aws, names: BTreeMap::from(names), data, visibility: "10m" })
    }

    pub fn name(&self, kind: Kind) -> &str {
        &self.names[&kind]
    }

    /// A source of this kind that may be made.
    pub fn source(&self, kind: Kind) -> Value {
        let name = self.name(kind);
        match kind {
            Kind::Rabbit => json!({"type": "rabbitmq", "queue": name, "create": true}),
            Kind::Nats => json!({"type": "nats", "stream": name}),
            Kind::Sqs | Kind::Fifo => {
                json!({"type": "aws.sqs", "queue": name, "create": true, "visibility": self.visibility})
            }
            Kind::Kinesis => {
                json!({"type": "aws.kinesis", "stream": name, "create": true, "start": "beginning"})
            }
        }
    }

    /// What tells Flare where the brokers are, and whose queues it makes.
    fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("FLARE_PROVIDER_RABBITMQ_URL", self.rabbit.broker.url(&self.rabbit.broker.address)),
            ("FLARE_PROVIDER_NATS_URL", self.nats.server.url(&self.nats.server.address)),
            ("FLARE_PROVIDER_AWS_ENDPOINT", format!("http://{}", self.aws)),
            ("FLARE_PROVIDER_AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("FLARE_PROVIDER_AWS_SECRET_ACCESS_KEY", "test".to_owned()),
            ("FLARE_CLUSTER_NAME", self.name(Kind::Sqs).to_owned()),
            ("FLARE_DOMAIN_CONSUMER_TRIES", "3".to_owned()),
        ]
    }

    /// Flare, which finds them.
    pub async fn flare(&self) -> Flare {
        let setup = Setup::default().data(self.data.path());
        let all = self.variables().into_iter();
        all.fold(setup, |setup, (name, value)| setup.with(name, &value)).start().await
    }

    /// A command over the same store, which a node may be using.
    pub async fn command(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
        command.args(words).arg("--data").arg(self.data.path());
        command.env_clear().envs(self.variables()).stdin(Stdio::null());
        let run = tokio::task::spawn_blocking(move || command.output());
        run.await.expect("nobody panicked").expect("the binary runs")
    }

    /// A command whose answer is JSON, with the exit code that it has to have.
    pub async fn plan(&self, words: &[&str], code: i32) -> Value {
        let output = self.command(&[words, &["--output", "json"]].concat()).await;
        assert_eq!(output.status.code(), Some(code), "{words:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// Makes what the sources read, as somebody else would.
    pub async fn make(&self, kind: Kind) {
        let name = self.name(kind);
        match kind {
            Kind::Rabbit => self.rabbit.declare().await,
            Kind::Nats => self.nats.make().await,
            Kind::Sqs => drop(self.sqs("CreateQueue", json!({"QueueName": name})).await),
            Kind::Fifo => {
                let made = json!({"QueueName": name, "Attributes": {"FifoQueue": "true"}});
                drop(self.sqs("CreateQueue", made).await);
            }
            Kind::Kinesis => {
                self.kinesis("CreateStream", json!({"StreamName": name, "ShardCount": 1})).await;
                until("the stream is there", || async {
                    let asked = json!({"StreamName": name});
                    let found = self.kinesis("DescribeStreamSummary", asked).await;
                    (found["StreamDescriptionSummary"]["StreamStatus"] == "ACTIVE").then_some(())
                })
                .await;
            }
        }
    }

    pub async fn delete(&self, kind: Kind) {
        match kind {
            Kind::Rabbit => self.rabbit.delete().await,
            Kind::Nats => self.nats.delete().await,
            Kind::Sqs | Kind::Fifo => {
                let url = self.url(self.name(kind)).await;
                drop(self.sqs("DeleteQueue", json!({"QueueUrl": url})).await);
            }
            Kind::Kinesis => {
                drop(self.kinesis("DeleteStream", json!({"StreamName": self.name(kind)})).await);
            }
        }
    }

    /// Puts messages, in this order; each goes with others of its group.
    pub async fn put(&self, kind: Kind, messages: &[(&str, String)]) {
        let bytes = || messages.iter().map(|(_, text)| Bytes::from(text.clone())).collect();
        match kind {
            Kind::Rabbit => self.rabbit.put(bytes()).await,
            Kind::Nats => self.nats.put(bytes()).await,
            Kind::Sqs | Kind::Fifo => {
                let url = self.url(self.name(kind)).await;
                for ten in messages.chunks(10) {
                    let entries = ten.iter().enumerate().map(|(place, (group, text))| {
                        let mut entry = json!({"Id": place.to_string(), "MessageBody": text});
                        if kind == Kind::Fifo {
                            entry["MessageGroupId"] = json!(group);
                            entry["MessageDeduplicationId"] = json!(fresh_name());
                        }
                        entry
                    });
                    let asked = json!({"QueueUrl": url, "Entries": entries.collect::<Vec<_>>()});
                    let sent = self.sqs("SendMessageBatch", asked).await;
                    assert_eq!(sent["Successful"].as_array().map(Vec::len), Some(ten.len()), "{sent}");
                }
            }
            Kind::Kinesis => {
                for some in messages.chunks(500) {
                    let record = |(group, text): &(&str, String)| json!({"Data": STANDARD.encode(text), "PartitionKey": group});
                    let records: Vec<Value> = some.iter().map(record).collect();
                    let asked = json!({"StreamName": self.name(kind), "Records": records});
                    let put = self.kinesis("PutRecords", asked).await;
                    assert_eq!(put["FailedRecordCount"].as_u64().unwrap_or_default(), 0, "{put}");
                }
            }
        }
    }

    pub async fn sqs(&self, operation: &str, input: Value) -> Value {
        does(self.aws, &format!("AmazonSQS.{operation}"), input).await
    }

    pub async fn kinesis(&self, operation: &str, input: Value) -> Value {
        does(self.aws, &format!("Kinesis_20131202.{operation}"), input).await
    }

    pub async fn url(&self, queue: &str) -> String {
        let found = self.sqs("GetQueueUrl", json!({"QueueName": queue})).await;
        found["QueueUrl"].as_str().expect("it has a url").to_owned()
    }
}

/// Waits until the status of a consumer or producer says so.
pub async fn until_status(api: Api, path: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let last = std::sync::Mutex::new(Value::Null);
    let found = until(what, || async {
        let status = api.get(&format!("{path}/status")).await.expect(200).json();
        *last.lock().expect("nobody panicked") = status.clone();
        holds(&status).then_some(status)
    });
    match tokio::time::timeout(crate::support::PATIENCE - std::time::Duration::from_secs(1), found).await {
        Ok(found) => found,
        Err(_) => panic!("waited in vain until {what}: {path} {}", last.lock().expect("nobody panicked")),
    }
}
