//! RabbitMQ as a source and a sink of messages: the contracts of `flare_provider::bridge` come in, AMQP 0.9.1 to one broker goes out.
//!
//! There are two connections, each made when it is first needed and made again when it broke: one for what is read, one for what is
//! sent. A broker that is short of memory or disk stops reading from connections that publish, and acknowledgements must not wait behind that.
//!
//! What Flare makes on a broker, and how it knows it again:
//!
//! | name | is |
//! |---|---|
//! | `flare.<owner>.queues` | a queue with the names of the queues that were made, since AMQP lists none |
//! | `flare.<owner>.lost` | where the broker puts what it gives up itself; that a queue leads there is the mark of its owner |

mod error;
mod link;
mod sink;
mod source;
mod upkeep;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_model::bridge;
use flare_model::time::Timestamp;
use flare_provider::bridge::{Bridge, BridgeError, BridgeErrorKind, BridgeResult, Sink, Source};
use flare_provider::upkeep::Change;

use link::Link;

/// Where the broker is, and how it is spoken to.
#[derive(Clone)]
pub struct Options {
    /// `amqp://user:password@host:port/vhost`, or `amqps://`.
    pub url: String,
    /// Authorities to trust for `amqps`, as PEM, beside those that browsers trust.
    pub ca: Option<String>,
    /// Whose queues are made here: the name of the cluster.
    pub owner: String,
    /// How long connecting, and each question that the broker answers at once, may take.
    pub timeout: Duration,
    /// Tells the time: messages have no numbers here, and are counted from when their stream was opened.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The url has a password in it.
        f.debug_struct("Options")
            .field("owner", &self.owner)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// A broker, as one process has it. Clones share its connections.
#[derive(Clone)]
pub struct RabbitMq {
    reads: Arc<Link>,
    sends: Arc<Link>,
    owner: Arc<str>,
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl RabbitMq {
    /// Reads the options; connects to nothing yet. `Refused`: the url is none.
    pub fn new(options: Options) -> BridgeResult<RabbitMq> {
        Ok(RabbitMq {
            reads: Arc::new(Link::new(&options, "reads")?),
            sends: Arc::new(Link::new(&options, "sends")?),
            owner: options.owner.into(),
            now: options.now,
        })
    }
}

#[async_trait]
impl Bridge for RabbitMq {
    fn source(&self, _consumer: &str, settings: &bridge::Source) -> BridgeResult<Arc<dyn Source>> {
        match settings {
            bridge::Source::RabbitMq(settings) => {
                Ok(Arc::new(source::Queue::new(self.reads.clone(), self.now.clone(), settings.clone())))
            }
            other => Err(not_ours(other.kind())),
        }
    }

    fn sink(&self, settings: &bridge::Target) -> BridgeResult<Arc<dyn Sink>> {
        match settings {
            bridge::Target::RabbitMq(settings) => {
                Ok(Arc::new(sink::Exchange::new(self.sends.clone(), settings.clone())))
            }
            other => Err(not_ours(other.kind())),
        }
    }

    async fn missing(&self, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
        upkeep::missing(&self.reads, sources).await
    }

    async fn left_over(&self, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
        upkeep::left_over(&self.reads, &self.owner, sources).await
    }

    async fn apply(&self, sources: &[(String, bridge::Source)], change: &Change) -> BridgeResult<()> {
        upkeep::apply(&self.reads, &self.owner, sources, change).await
    }
}

fn not_ours(kind: &str) -> BridgeError {
    BridgeError::new(BridgeErrorKind::Refused, format!("RabbitMQ has nothing of type \"{kind}\""))
}
