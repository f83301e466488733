//! What origins said, and what the engine made of it.

use flare_model::document::Outcome;

use super::histogram::{QUANTITIES, TIMES};
use super::refusing::Refusing;
use super::{Count, Histogram};

/// Why a document is refused, in the order of [`Origin::refused`].
pub const REFUSALS: [&str; 5] = ["no_resource", "unreadable", "unavailable", "failed", "quota"];

/// Why a document was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No resource matches.
    NoResource,
    /// It, or its revision, cannot be read.
    Unreadable,
    /// The store takes no more now.
    Unavailable,
    /// The store failed otherwise.
    Failed,
    /// The account has as much as it may have, or sends faster than it may.
    Quota,
}

/// What origins said. Written by all threads of the API, a few times per document.
#[derive(Debug)]
pub struct Origin {
    /// By [`Outcome`].
    pub outcomes: [Count; Outcome::ALL.len()],
    /// By [`Refusal`].
    pub refused: [Count; REFUSALS.len()],
    /// Bytes of the documents that were committed.
    pub bytes: Count,
    /// How long commits took, from the origin's side, in microseconds.
    pub commit: Histogram,
    /// Whether the store takes documents.
    pub refusing: Refusing,
}

impl Origin {
    pub(super) fn new() -> Origin {
        Origin {
            outcomes: Default::default(),
            refused: Default::default(),
            bytes: Count::default(),
            commit: Histogram::new(&TIMES),
            refusing: Refusing::default(),
        }
    }

    /// A document was compared, and this is what became of it.
    pub fn answered(&self, outcome: Outcome) {
        self.outcomes[outcome as usize].add_among_many(1);
    }

    /// A document was refused.
    pub fn refused(&self, refusal: Refusal) {
        self.refused[refusal as usize].add_among_many(1);
    }
}

/// What the engine committed. Written by its one thread.
#[derive(Debug)]
pub struct Engine {
    /// Changes in each commit that had any.
    pub group: Histogram,
}

impl Engine {
    pub(super) fn new() -> Engine {
        Engine { group: Histogram::new(&QUANTITIES) }
    }
}
