//! Bridges: messages come in from a [`Source`] and go out to a [`Sink`]. A [`Bridge`] is an engine that has such.
//!
//! Like the other contracts these do not retry, time or count: that is done once, above them. Unlike the others their errors are
//! [`BridgeError`]s, because what a broker refuses is for the user to mend and not for the node.

pub mod error;
pub mod sink;
pub mod source;

use std::sync::Arc;

use async_trait::async_trait;
use flare_model::bridge;

pub use error::{BridgeError, BridgeErrorKind, BridgeResult};
pub use sink::{Outgoing, Sent, Sink};
pub use source::{Batch, Lag, Message, Nature, Partition, Progress, Receipt, Source, Stream};

use crate::upkeep::Change;

/// An engine with sources or sinks: a broker, a cloud. One is opened for each that is configured; it keeps connections that
/// its sources and sinks share, and makes them again when they break. It starts no connection before something is asked of it.
#[async_trait]
pub trait Bridge: Send + Sync {
    /// The source of these settings, for the consumer of this id. Looks at nothing yet. `Refused`: it has none of that type.
    fn source(&self, consumer: &str, settings: &bridge::Source) -> BridgeResult<Arc<dyn Source>>;

    /// The sink of these settings. Looks at nothing yet. `Refused`: it has none of that type.
    fn sink(&self, settings: &bridge::Target) -> BridgeResult<Arc<dyn Sink>>;

    /// What these sources (by consumer) need and lack: what `create: true` lets Flare make. Makes nothing.
    async fn missing(&self, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>>;

    /// What carries the mark of this cluster (`owner`) and belongs to none of these consumers. Never lists what does not carry
    /// it, whoever made that.
    async fn left_over(&self, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>>;

    /// Does what a plan of the two above says. Safe to repeat, and from two places at once.
    async fn apply(&self, sources: &[(String, bridge::Source)], change: &Change) -> BridgeResult<()>;
}
