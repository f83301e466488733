//! Where a producer's notifications go, if not over HTTP.

use std::fmt;

use super::Wording;

/// A target, checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A queue of SQS.
    Sqs(SqsTarget),
    /// A stream of Kinesis.
    Kinesis(KinesisTarget),
    /// An exchange or a queue of RabbitMQ.
    RabbitMq(RabbitMqTarget),
    /// A subject of NATS JetStream.
    Nats(NatsTarget),
}

impl Target {
    /// The word for its type, as users write it.
    pub fn kind(&self) -> &'static str {
        match self {
            Target::Sqs(_) => "aws.sqs",
            Target::Kinesis(_) => "aws.kinesis",
            Target::RabbitMq(_) => "rabbitmq",
            Target::Nats(_) => "nats",
        }
    }
}

/// What it is called among others: no two that lead to different places have the same.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind())?;
        match self {
            Target::Sqs(SqsTarget { queue }) => f.write_str(queue),
            Target::Kinesis(KinesisTarget { stream }) => f.write_str(stream),
            Target::RabbitMq(RabbitMqTarget { exchange, routing_key, persistent }) => {
                let passing = if *persistent { "" } else { " in memory" };
                write!(f, "{exchange}/{}{passing}", routing_key.as_str())
            }
            Target::Nats(NatsTarget { subject }) => f.write_str(subject.as_str()),
        }
    }
}

/// A queue of SQS.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SqsTarget {
    /// Its name, or its url. One that ends with `.fifo` keeps the order of each document.
    pub queue: String,
}

/// A stream of Kinesis. The document is the partition key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KinesisTarget {
    /// Its name.
    pub stream: String,
}

/// An exchange or a queue of RabbitMQ.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RabbitMqTarget {
    /// The exchange; empty for the one that leads to the queue of the routing key.
    pub exchange: String,
    /// The routing key; the name of the queue where one is given.
    pub routing_key: Wording,
    /// Whether the broker writes messages to disk.
    pub persistent: bool,
}

/// A subject of NATS JetStream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NatsTarget {
    /// The subject.
    pub subject: Wording,
}
