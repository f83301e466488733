//! Acts: what was done, by whom. Only added to, and removed from its old end.

use async_trait::async_trait;
use flare_model::time::Timestamp;

use crate::error::Result;

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// When, by the clock of whoever writes it down; clocks may go back.
    pub at: Timestamp,
    /// In which account.
    pub account: String,
    /// The rest, which the engine does not look into.
    pub body: String,
}

/// Which acts.
#[derive(Clone, Debug, Default)]
pub struct ListActs {
    /// Only of this account.
    pub account: Option<String>,
    /// Only those at this time or later.
    pub since: Option<Timestamp>,
    /// After so many.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

/// A part of the acts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActsPage {
    /// How many there are in all.
    pub total: u64,
    /// The part, those that were written down last first.
    pub acts: Vec<Act>,
}

/// What was done.
#[async_trait]
pub trait Acts: Send + Sync {
    /// Writes one down. It is durable when the call returns, and comes before all that were there.
    async fn append(&self, act: Act) -> Result<()>;

    /// Some of them, in one snapshot.
    async fn list(&self, wanted: ListActs) -> Result<ActsPage>;

    /// Removes from the old end, until one that is not before `before`, `limit` at most. Answers how many went.
    async fn trim(&self, before: Timestamp, limit: usize) -> Result<u64>;
}
