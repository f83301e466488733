//! Consumers at work: messages of sources come in, documents in the store go out. Knowledge goes down this list:
//!
//! - [`run`]: a consumer: its partitions are found, and each is read by a task of its own, as long as it is this node's;
//! - [`reading`]: a partition of a queue or a stream: asked, stored, acknowledged, in this order;
//! - [`poll`]: an endpoint that is asked again and again;
//! - [`unit`]: messages become documents, and that they did becomes durable, under the epoch of their reader;
//! - [`board`]: what is known of a consumer while it runs here.

pub mod board;
pub mod poll;
pub mod reading;
pub mod run;
pub mod unit;

#[cfg(test)]
mod stories;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_model::access::Account;
use flare_model::consumer::Counted;
use flare_model::document::Write;
use flare_provider::{Committed, ProviderError, Store};
use parking_lot::Mutex;

use crate::bridges::Bridges;
use crate::door::{Chance, Clock};

/// What reading a source takes.
pub struct Tools {
    /// Where everything is.
    pub store: Store,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What jitter is drawn from.
    pub chance: Chance,
    /// What leads to sources.
    pub bridges: Arc<Bridges>,
    /// What asks endpoints.
    pub web: Arc<dyn Web>,
    /// What accounts may have.
    pub accounts: Arc<dyn Accounts>,
    /// How often an unreadable message is tried.
    pub tries: u32,
    /// How many messages are asked for at once.
    pub batch: usize,
    /// What this process has read, of all consumers.
    pub counted: Arc<Mutex<Counted>>,
    /// So many bytes are written at once.
    pub commit_bytes: usize,
}

/// What accounts may have and send. A consumer that may not now waits, and what it was given waits with it.
#[async_trait]
pub trait Accounts: Send + Sync {
    /// How many of so many messages an account may have stored now, one at least. None: after so long it may have one.
    fn messages(&self, account: &Account, wanted: usize) -> Result<usize, Duration>;

    /// Commits writes of an account, in order, from the first on as many as fit into the documents that it may have.
    async fn commit(&self, account: &Account, writes: Vec<Write>) -> Result<Fitting, ProviderError>;
}

/// What was committed of some writes.
pub struct Fitting {
    /// What became of those that fit: the first ones.
    pub committed: Vec<flare_provider::Result<Committed>>,
    /// Why the next does not; nothing where all did.
    pub full: Option<String>,
}

/// The least time to wait for messages that an account may have stored: so that those of a while are stored together.
const A_WHILE: Duration = Duration::from_millis(100);

/// So many bytes of an answer of an endpoint that is polled are read. When there are more: the answer is not used, and the consumer
/// says so.
pub const ANSWER: usize = 32 << 20;

/// What asks endpoints, under the rules for destinations that everything Flare sends goes by. Redirects are not followed.
#[async_trait]
pub trait Web: Send + Sync {
    /// A GET, and what came of it. An error says in words why there is no answer.
    async fn get(&self, asked: Asked<'_>) -> Result<Page, String>;
}

/// What is asked for.
pub struct Asked<'a> {
    /// Where.
    pub url: &'a str,
    /// With these headers.
    pub headers: &'a [(String, String)],
    /// How long it may take.
    pub timeout: Duration,
}

/// What an endpoint answered.
#[derive(Debug, Default)]
pub struct Page {
    /// Its status.
    pub status: u16,
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<String>,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// The body; `None`: it is larger than is read.
    pub body: Option<Vec<u8>>,
}

/// How long to wait after so many failures in a row: twice as long each time, up to a most, and a part of it by chance, so that
/// those who failed together do not come back together.
pub fn backoff(failures: u32, first: Duration, most: Duration, chance: &Chance) -> Duration {
    let whole = (first * (1 << failures.saturating_sub(1).min(16))).min(most);
    whole.mul_f64(0.5 + chance.unit() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_fails_is_asked_less_and_less_often() {
        let chance = Chance::from_seed(1);
        let (first, most) = (Duration::from_millis(500), Duration::from_secs(30));
        for (failures, whole) in [(1, 500), (2, 1000), (5, 8000), (40, 30_000)] {
            let wait = backoff(failures, first, most, &chance).as_millis();
            assert!(wait >= whole / 2 && wait <= whole, "{failures}: {wait}");
        }
    }
}
