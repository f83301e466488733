//! Several nodes that share the work, purely: which keys they keep with the coordinator (`keys`), who should have
//! which unit ([`plan`]) and why ([`explain`](plan::explain)), and what one node does as time passes and answers come ([`life`]). Nothing here asks a
//! clock, a store or a coordinator; times are durations on the monotonic clock of one node, handed in.
//!
//! The idea is *registry, lock, assign*. Nodes register under a session; the first that creates the leader's key leads; the leader
//! assigns units; a node that sees a unit assigned to it claims its key, and only then takes an epoch from the ledger, which
//! fences all who had the unit before. An assignment is a wish ([`Desired`](plan::Desired)); a claim is a fact
//! ([`Effective`](plan::Effective)). Only claims keep two nodes apart, so nothing about the leader has to be right for that.

pub mod keys;
pub mod life;
pub mod plan;
pub mod unit;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::ids::{NodeId, SessionId};
pub use unit::{UnitId, UnitKind, UnitState};

/// Counts the changes of all keys of a cluster. It grows with every change and never repeats, also after a delete: so a
/// version names one state of one key for ever.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Version(pub u64);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a node fares, as the others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NodeState {
    /// It renews its lease and takes units.
    Live,
    /// It hands its units over, and takes none.
    Draining,
    /// It has handed them over.
    Drained,
    /// It missed a renewal, and its lease is not over yet; or it says itself that it does not work, or may not. It gets no units.
    Suspect,
    /// Its lease is over, or it has left.
    Gone,
}

/// Why a unit is where it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AssignmentReason")]
pub enum Reason {
    /// It is new.
    Created,
    /// The node that had it is gone.
    NodeGone,
    /// The node that had it is drained, does not work, or takes none any more.
    Drain,
    /// Others had more than their part.
    Balance,
    /// The node that had it had too much to do.
    GiveBack,
    /// A user moved it.
    Reroute,
    /// Its subscription was cut into other shards.
    Shards,
}
