//! Where a consumer's messages come from.

use std::collections::BTreeMap;

use crate::duration::HumanDuration;
use crate::time::Timestamp;

/// A source, checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A queue of SQS.
    Sqs(SqsSource),
    /// A stream of Kinesis.
    Kinesis(KinesisSource),
    /// A queue of RabbitMQ.
    RabbitMq(RabbitMqSource),
    /// A stream of NATS JetStream.
    Nats(NatsSource),
    /// An endpoint that is asked again and again.
    HttpPoll(HttpPollSource),
}

impl Source {
    /// The word for its type, as users write it.
    pub fn kind(&self) -> &'static str {
        match self {
            Source::Sqs(_) => "aws.sqs",
            Source::Kinesis(_) => "aws.kinesis",
            Source::RabbitMq(_) => "rabbitmq",
            Source::Nats(_) => "nats",
            Source::HttpPoll(_) => "http.poll",
        }
    }
}

/// How many receivers a queue of SQS has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Concurrency {
    /// More while they come back full and there is room, fewer when they come back empty.
    #[default]
    Auto,
    /// So many, of ten messages each.
    Fixed(u32),
}

/// Where a source that keeps what was read begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StartAt {
    /// With what comes from now on.
    #[default]
    Latest,
    /// With all there is.
    Beginning,
    /// With what came at this time or later.
    At(Timestamp),
}

/// A queue of SQS.
#[derive(Clone, Debug, PartialEq)]
pub struct SqsSource {
    /// Its name, or its url.
    pub queue: String,
    /// How many ask.
    pub concurrency: Concurrency,
    /// How long a message is hidden from others; prolonged while it is being stored.
    pub visibility: HumanDuration,
    /// Whether `flare fixup` makes it.
    pub create: bool,
}

/// A stream of Kinesis.
#[derive(Clone, Debug, PartialEq)]
pub struct KinesisSource {
    /// Its name.
    pub stream: String,
    /// Where a shard without a position begins.
    pub start: StartAt,
    /// Whether `flare fixup` makes it.
    pub create: bool,
}

/// A queue of RabbitMQ.
#[derive(Clone, Debug, PartialEq)]
pub struct RabbitMqSource {
    /// Its name.
    pub queue: String,
    /// How many messages may be given out and not acknowledged.
    pub prefetch: u16,
    /// The exchange that it is bound to, where it is to be.
    pub exchange: Option<String>,
    /// By which key.
    pub routing_key: Option<String>,
    /// Whether `flare fixup` makes it.
    pub create: bool,
}

/// A stream of NATS JetStream.
#[derive(Clone, Debug, PartialEq)]
pub struct NatsSource {
    /// Its name.
    pub stream: String,
    /// Only these of its subjects.
    pub subject: Option<String>,
    /// The name of the durable consumer; `flare-<consumer>` where none is given.
    pub durable: Option<String>,
    /// Where it begins.
    pub start: StartAt,
}

/// An endpoint that is asked again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpPollSource {
    /// Where.
    pub url: String,
    /// How often.
    pub interval: HumanDuration,
    /// Sent with every request.
    pub headers: BTreeMap<String, Vec<String>>,
    /// The path to the list of documents; without one the body is one document.
    pub items: Option<String>,
    /// The path to the url of the next page.
    pub next: Option<String>,
    /// Whether a document that is missing from a whole list was deleted.
    pub deletes: bool,
    /// How long an answer is waited for.
    pub timeout: HumanDuration,
}
