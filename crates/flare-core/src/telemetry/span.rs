//! In: what happened to a change, as the hot path knows it: numbers and shared references. Out: a span that waits to be
//! sent; names and texts are made of it by whoever sends it.

use std::sync::Arc;
use std::time::Duration;

use flare_model::document::Outcome as Accepted;
use flare_model::feed::Action;
use flare_model::resource::Resource;
use http::HeaderValue;

use crate::notification::compiled::Compiled;
use crate::observe::{Outcome, Spans};
use crate::trace::{SpanId, TraceId};

/// Something that took time. Times are monotonic.
pub struct Span {
    /// The trace it belongs to.
    pub trace: TraceId,
    /// Itself.
    pub id: SpanId,
    /// What it is part of.
    pub parent: Option<SpanId>,
    /// As it came with the trace.
    pub state: Option<Arc<HeaderValue>>,
    /// When it began.
    pub began: Duration,
    /// When it ended.
    pub ended: Duration,
    /// What it was.
    pub what: What,
}

/// What a span tells of.
pub enum What {
    /// A request of an origin.
    Accept(Box<Accept>),
    /// Making changes durable.
    Commit {
        /// How many.
        changes: usize,
    },
    /// From the commit until a client's turn came.
    Spread {
        /// Whose.
        compiled: Arc<Compiled>,
    },
    /// One request to a client.
    Attempt(Box<Attempted>),
}

/// A request of an origin.
pub struct Accept {
    /// Which operation.
    pub operation: Operation,
    /// Of one document: its url.
    pub document: Option<Arc<str>>,
    /// The resource that the url belongs to.
    pub resource: Option<Arc<Resource>>,
    /// How it was answered; `None` when nobody waited for the answer.
    pub status: Option<u16>,
    /// What became of the change.
    pub outcome: Option<Accepted>,
}

/// What an origin asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `PUT /documents/{url}`.
    Put,
    /// `DELETE /documents/{url}`.
    Delete,
    /// A part of `POST /documents`.
    Bulk,
}

/// One request to a client, and how it ended.
pub struct Attempted {
    /// Who was told, as it was then.
    pub compiled: Arc<Compiled>,
    /// About which document.
    pub document: Arc<str>,
    /// What was told.
    pub action: Action,
    /// Attempts made before for the same revision.
    pub attempts: u32,
    /// The replay that asked for it, 0 for none.
    pub replay: u64,
    /// What it meant.
    pub outcome: Outcome,
    /// The answer's status.
    pub status: Option<u16>,
    /// Why there was no answer, and whether time ran out.
    pub failure: Option<(String, bool)>,
    /// How long its parts took.
    pub spans: Spans,
}
