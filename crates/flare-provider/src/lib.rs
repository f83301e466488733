//! The contracts between Flare and where it keeps things, the reference engine `memory`, wrappers that work
//! over every engine, and the suite of behaviours that every engine has to show.
//!
//! Each method says what it promises under a crash and under concurrency. An error has a [kind](ErrorKind)
//! that tells the caller what to do; absence is an `Option`, not an error. No engine retries, times or counts:
//! that is done once, by a wrapper.

pub mod acts;
pub mod bridge;
pub mod catalog;
pub mod cluster;
pub mod coding;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod documents;
pub mod doorbell;
pub mod error;
pub mod faulty;
pub mod intake;
pub mod ledger;
pub mod memory;
pub mod transfer;
pub mod upkeep;

use std::sync::Arc;

pub use acts::{Act, Acts, ActsPage, ListActs};
pub use catalog::{
    Capture, Catalog, CatalogChange, CatalogChanges, Deletion, Entity, EntityKind, MOST_UNSEEN, NewEntity,
    Start,
};
pub use cluster::{Cluster, Entry, Granted, Seen, Session, SessionId, Version, Watch};
pub use documents::{
    Changed, Committed, Documents, LaneState, Newest, OlderRevision, Page, ScanLane, Witness,
};
pub use doorbell::{Doorbell, Heard, Listener, Ring};
pub use error::{Conflict, ErrorKind, ProviderError, Result};
pub use intake::{Intake, Letter, ListLetters, NewLetter, Reading};
pub use ledger::{FeedNeeds, FeedOwes, FeedSummary, FeedWrite, Ledger, ListStandings, Opened};

/// One engine, seen through its contracts.
#[derive(Clone)]
pub struct Store {
    /// Resources and subscriptions.
    pub catalog: Arc<dyn Catalog>,
    /// The newest documents, which are the log.
    pub documents: Arc<dyn Documents>,
    /// What each client has.
    pub ledger: Arc<dyn Ledger>,
    /// What was done, by whom.
    pub acts: Arc<dyn Acts>,
    /// How far consumers have read.
    pub intake: Arc<dyn Intake>,
}
