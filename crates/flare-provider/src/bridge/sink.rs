//! Sink: where a producer's notifications go.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

/// A notification on its way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// The same on every attempt of a notification, and another one for each.
    pub id: String,
    /// The name of the document: what keeps its notifications in order, where a sink has keys for that.
    pub document: Arc<str>,
    /// Its revision, as its origin wrote it.
    pub revision: String,
    /// Headers (`webhook-id`, `webhook-timestamp`, `webhook-signature`, `flare-document` and the like), in lower case.
    pub headers: Vec<(String, String)>,
    /// The type of the body, where there is one.
    pub content_type: Option<&'static str>,
    /// What it says.
    pub body: Bytes,
}

/// What became of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The sink has it, durably as far as it promises that.
    Delivered,
    /// The sink will never take it: it is too large, nothing is bound to its key, the queue does not exist.
    Refused(String),
    /// The sink did not take it, surely, and may later: nobody answers, it asks to wait.
    Failed(String),
    /// Nobody knows: the answer was lost.
    Unknown(String),
}

/// Where notifications go.
#[async_trait]
pub trait Sink: Send + Sync {
    /// How many it takes at once, at the most.
    fn most(&self) -> usize;

    /// Sends them and answers for each, in their order. Two of one document are never in one call, and never in two at a time. One that
    /// is dropped midway may have sent any of them.
    async fn send(&self, batch: Vec<Outgoing>) -> Vec<Sent>;
}
