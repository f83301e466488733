//! Where a producer's notifications go, as users write it: the JSON of a sink comes in, its settings go out, checked. Every mistake
//! is named with its field and the remedy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{KinesisTarget, NatsTarget, RabbitMqTarget, SqsTarget, Target, Wording};
use crate::invalid::Invalid;

/// The longest name that a broker takes: a short string of AMQP, which the others do not go below but for queues of SQS,
/// which may be urls.
const LONGEST_NAME: usize = 255;

/// Where notifications go, if not over HTTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum SinkDraft {
    /// A queue of SQS.
    #[serde(rename = "aws.sqs")]
    Sqs(SqsDraft),
    /// A stream of Kinesis.
    #[serde(rename = "aws.kinesis")]
    Kinesis(KinesisDraft),
    /// An exchange or a queue of RabbitMQ.
    #[serde(rename = "rabbitmq")]
    RabbitMq(RabbitMqDraft),
    /// A subject of NATS JetStream.
    #[serde(rename = "nats")]
    Nats(NatsDraft),
}

/// A queue of SQS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "SqsTargetDraft")]
pub struct SqsDraft {
    /// Its name, or its url. One that ends with `.fifo` keeps the order of each document.
    #[schemars(length(min = 1))]
    pub queue: String,
}

/// A stream of Kinesis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "KinesisTargetDraft")]
pub struct KinesisDraft {
    /// Its name. The document is the partition key.
    #[schemars(length(min = 1, max = 128))]
    pub stream: String,
}

/// An exchange or a queue of RabbitMQ: one of the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "RabbitMqTargetDraft")]
pub struct RabbitMqDraft {
    /// The exchange.
    #[schemars(length(min = 1, max = 255))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<String>,
    /// The queue.
    #[schemars(length(min = 1, max = 255))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The routing key, for an exchange. It may use `{id}` and `{revision}`.
    #[schemars(length(max = 255))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing_key: Option<String>,
    /// Whether the broker writes messages to disk; it does where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent: Option<bool>,
}

/// A subject of NATS JetStream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "NatsTargetDraft")]
pub struct NatsDraft {
    /// The subject. It may use `{id}` and `{revision}`.
    #[schemars(length(min = 1, max = 255))]
    pub subject: String,
}

impl SinkDraft {
    /// Checks everything a user can get wrong.
    pub fn check(&self) -> Result<Target, Invalid> {
        match self {
            SinkDraft::Sqs(SqsDraft { queue }) => {
                is_sqs_queue(queue).map_err(|problem| Invalid::new("target.queue", problem))?;
                Ok(Target::Sqs(SqsTarget { queue: queue.clone() }))
            }
            SinkDraft::Kinesis(KinesisDraft { stream }) => {
                is_kinesis_stream(stream).map_err(|problem| Invalid::new("target.stream", problem))?;
                Ok(Target::Kinesis(KinesisTarget { stream: stream.clone() }))
            }
            SinkDraft::RabbitMq(draft) => draft.check().map(Target::RabbitMq),
            SinkDraft::Nats(NatsDraft { subject }) => {
                let subject = printable("subject", subject, LONGEST_NAME)?;
                let tokens: Vec<&str> = subject.split('.').collect();
                if tokens.iter().any(|token| token.is_empty() || ["*", ">"].contains(token)) {
                    let problem =
                        "is what is published under: no part between its dots may be empty, `*` or `>`";
                    return Err(Invalid::new("target.subject", problem));
                }
                Ok(Target::Nats(NatsTarget { subject: wording("subject", &subject)? }))
            }
        }
    }

    /// Fills in what was not said.
    pub(crate) fn fill(&mut self) {
        if let SinkDraft::RabbitMq(draft) = self {
            draft.persistent.get_or_insert(true);
        }
    }
}

impl RabbitMqDraft {
    fn check(&self) -> Result<RabbitMqTarget, Invalid> {
        let persistent = self.persistent.unwrap_or(true);
        match (&self.exchange, &self.queue) {
            (Some(_), Some(_)) => Err(Invalid::new(
                "target.queue",
                "stands for an exchange of its own: leave out one of the two",
            )),
            (None, None) => Err(Invalid::new("target.exchange", "is required, or target.queue")),
            (Some(exchange), None) => {
                let exchange = printable("exchange", exchange, LONGEST_NAME)?;
                let routing_key = self.routing_key.as_deref().unwrap_or_default();
                if routing_key.len() > LONGEST_NAME {
                    let problem = format!("must have at most {LONGEST_NAME} bytes");
                    return Err(Invalid::new("target.routingKey", problem));
                }
                let routing_key = wording("routingKey", routing_key)?;
                Ok(RabbitMqTarget { exchange, routing_key, persistent })
            }
            (None, Some(queue)) => {
                if self.routing_key.is_some() {
                    let problem = "belongs to an exchange: a queue is reached by its name; leave it out";
                    return Err(Invalid::new("target.routingKey", problem));
                }
                let routing_key = wording("queue", &printable("queue", queue, LONGEST_NAME)?)?;
                if !routing_key.is_fixed() {
                    let problem = "is the name of one queue; use target.exchange with a routingKey for {id} and {revision}";
                    return Err(Invalid::new("target.queue", problem));
                }
                Ok(RabbitMqTarget { exchange: String::new(), routing_key, persistent })
            }
        }
    }
}

fn wording(field: &str, written: &str) -> Result<Wording, Invalid> {
    Wording::parse(written).map_err(|problem| Invalid::new(format!("target.{field}"), problem))
}

/// A name of printable characters, without blanks.
fn printable(field: &str, name: &str, longest: usize) -> Result<String, Invalid> {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    if name.is_empty() || name.len() > longest || name.chars().any(blank) {
        let problem = format!("must have 1 to {longest} bytes and no blanks");
        return Err(Invalid::new(format!("target.{field}"), problem));
    }
    Ok(name.to_owned())
}

/// Whether a queue of SQS can be named so: by its name or its url. If not, why.
pub fn is_sqs_queue(queue: &str) -> Result<(), &'static str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let stem = queue.strip_suffix(".fifo").unwrap_or(queue);
    let is_name = !stem.is_empty() && queue.len() <= 80 && stem.chars().all(legal);
    let is_url = queue.starts_with("http://") || queue.starts_with("https://");
    let blank = |c: char| c.is_whitespace() || c.is_control();
    match is_name || (is_url && queue.len() <= 2048 && !queue.contains(blank)) {
        true => Ok(()),
        false => Err(
            "must be a url, or a name of 1 to 80 letters, digits, `_` and `-`, with or without `.fifo` at its end",
        ),
    }
}

/// Whether a stream of Kinesis can be named so. If not, why.
pub fn is_kinesis_stream(stream: &str) -> Result<(), &'static str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    match !stream.is_empty() && stream.len() <= 128 && stream.chars().all(legal) {
        true => Ok(()),
        false => Err("must have 1 to 128 letters, digits, `_`, `.` and `-`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn checked(json: Value) -> Result<String, String> {
        let draft: SinkDraft = serde_json::from_value(json).map_err(|e| e.to_string())?;
        draft.check().map(|target| target.to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn each_kind_has_its_name() {
        for (json, name) in [
            (json!({"type": "aws.sqs", "queue": "orders.fifo"}), "aws.sqs orders.fifo"),
            (
                json!({"type": "aws.sqs", "queue": "http://localhost:4566/000/q"}),
                "aws.sqs http://localhost:4566/000/q",
            ),
            (json!({"type": "aws.kinesis", "stream": "out"}), "aws.kinesis out"),
            (json!({"type": "rabbitmq", "exchange": "out", "routingKey": "o.{id}"}), "rabbitmq out/o.{id}"),
            (json!({"type": "rabbitmq", "queue": "q", "persistent": false}), "rabbitmq /q in memory"),
            (json!({"type": "nats", "subject": "orders.{id}"}), "nats orders.{id}"),
        ] {
            assert_eq!(checked(json.clone()), Ok(name.to_owned()), "{json}");
        }
    }

    #[test]
    fn every_mistake_is_named_with_its_field() {
        for (json, word) in [
            (json!({"type": "kafka", "topic": "t"}), "kafka"),
            (json!({"queue": "t"}), "type"),
            (json!({"type": "aws.sqs", "queue": "q", "topic": "t"}), "topic"),
            (json!({"type": "aws.sqs"}), "queue"),
            (json!({"type": "aws.sqs", "queue": "a b"}), "target.queue"),
            (json!({"type": "aws.kinesis", "stream": ""}), "target.stream"),
            (json!({"type": "rabbitmq"}), "target.exchange"),
            (json!({"type": "rabbitmq", "exchange": "e", "queue": "q"}), "target.queue"),
            (json!({"type": "rabbitmq", "queue": "q", "routingKey": "k"}), "target.routingKey"),
            (json!({"type": "rabbitmq", "queue": "{id}"}), "target.queue"),
            (json!({"type": "rabbitmq", "exchange": "e", "routingKey": "{name}"}), "{name}"),
            (json!({"type": "nats", "subject": "a..b"}), "target.subject"),
            (json!({"type": "nats", "subject": "a.>"}), "target.subject"),
            (json!({"type": "nats", "subject": "a {id}"}), "target.subject"),
        ] {
            let problem = checked(json.clone()).expect_err(&json.to_string());
            assert!(problem.contains(word), "{json}: {problem}");
        }
    }
}
