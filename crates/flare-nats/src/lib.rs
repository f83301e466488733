//! NATS JetStream as a source and a sink of messages, and NATS as a doorbell: the contracts of `flare_provider` come in, requests over one connection go out.
//!
//! JetStream is spoken by its own requests, which are JSON on subjects that begin with `$JS.API`, rather than by the client's layer over
//! them: what is pulled has to survive a question that is dropped, and a heartbeat that stays away has to be noticed.
//!
//! What Flare makes on a server are durable consumers, whose description (`flare: <owner>`) says whose they are; servers before
//! 2.10 forget metadata without a word.

mod api;
mod consumer;
mod doorbell;
mod link;
mod pulling;
mod sink;
mod source;
mod upkeep;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_model::bridge;
use flare_provider::bridge::{Bridge, BridgeError, BridgeErrorKind, BridgeResult, Sink, Source};
use flare_provider::upkeep::Change;

use link::Link;

/// Where the servers are, and how they are spoken to.
#[derive(Clone)]
pub struct Options {
    /// `nats://host:port` or `tls://host:port`, with `user:password@` where they want that; several are separated by commas.
    pub url: String,
    /// The file with the credentials, where they want those.
    pub credentials: Option<PathBuf>,
    /// A file with authorities to trust, beside those of the system.
    pub ca: Option<PathBuf>,
    /// Whose consumers are made here: the name of the cluster.
    pub owner: String,
    /// How long connecting, and every answer, may take.
    pub timeout: Duration,
    /// What was given out, and is neither settled nor kept for so long, is given out again. For consumers that are made here.
    pub lease: Duration,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The url may have a password in it.
        let mut shown = f.debug_struct("Options");
        shown.field("owner", &self.owner).field("timeout", &self.timeout).field("lease", &self.lease);
        shown.finish_non_exhaustive()
    }
}

/// Servers of NATS, as one process has them. Clones share its connection.
#[derive(Clone)]
pub struct Nats {
    link: Arc<Link>,
    owner: Arc<str>,
    lease: Duration,
}

impl Nats {
    /// Reads the options; connects to nothing yet. `Refused`: the url is none.
    pub fn new(options: Options) -> BridgeResult<Nats> {
        let (owner, lease) = (options.owner.as_str().into(), options.lease);
        Ok(Nats { link: Arc::new(Link::new(options)?), owner, lease })
    }

    fn consumer(&self, consumer: &str, settings: &bridge::NatsSource) -> consumer::Wanted {
        consumer::Wanted::new(&self.owner, self.lease, consumer, settings)
    }
}

#[async_trait]
impl Bridge for Nats {
    fn source(&self, consumer: &str, settings: &bridge::Source) -> BridgeResult<Arc<dyn Source>> {
        match settings {
            bridge::Source::Nats(settings) => {
                let wanted = self.consumer(consumer, settings);
                Ok(Arc::new(source::Durable::new(self.link.clone(), wanted)))
            }
            other => Err(not_ours(other.kind())),
        }
    }

    fn sink(&self, settings: &bridge::Target) -> BridgeResult<Arc<dyn Sink>> {
        match settings {
            bridge::Target::Nats(settings) => {
                Ok(Arc::new(sink::Subject::new(self.link.clone(), settings.clone())))
            }
            other => Err(not_ours(other.kind())),
        }
    }

    async fn missing(&self, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
        upkeep::missing(self, sources).await
    }

    async fn left_over(&self, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
        upkeep::left_over(self, sources).await
    }

    async fn apply(&self, sources: &[(String, bridge::Source)], change: &Change) -> BridgeResult<()> {
        upkeep::apply(self, sources, change).await
    }
}

fn not_ours(kind: &str) -> BridgeError {
    BridgeError::new(BridgeErrorKind::Refused, format!("NATS has nothing of type \"{kind}\""))
}
