//! Ledger: what each client has. One feed per subscription and lane, written by one owner at a time.

use async_trait::async_trait;
use flare_model::feed::{Kept, Note, Record, Saved, Standing};
use flare_model::ids::{FeedId, Ordinal, Seq, SubscriptionNumber};

use crate::error::Result;

/// A feed as it was found, and the epoch under which it may be written from now on.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The feed.
    pub feed: FeedId,
    /// What was recorded. `strange` is set when the feed's log incarnation is not the present one.
    pub saved: Saved,
    /// The newest change of its lane at that moment.
    pub head: Seq,
}

/// One feed's record, to be made durable.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedWrite {
    /// The feed.
    pub feed: FeedId,
    /// The epoch with which it was opened.
    pub epoch: u64,
    /// What to write, as one.
    pub record: Record,
}

/// Which standings to list, by lane and ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListStandings {
    /// Of which subscription.
    pub subscription: SubscriptionNumber,
    /// Dead letters, or those waiting for a retry. Standings that are leased or only
    /// doubtful are in neither list.
    pub dead: bool,
    /// Skip so many.
    pub offset: u64,
    /// Answer at most so many.
    pub limit: u64,
}

/// The ledger.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Takes over feeds: durably raises their epoch to `epoch` and *then* reads them, so that nothing written
    /// under an older epoch is missed and nothing can be written under one any more. Feeds that do not exist
    /// (their subscription is gone) are left out of the answer. `Fenced` when one of them has a higher epoch
    /// already; then none is taken over. The same epoch again is fine.
    async fn open(&self, feeds: &[FeedId], epoch: u64) -> Result<Vec<Opened>>;

    /// A higher epoch than any that was used or given out, also for feeds that are gone, and above 0: what a
    /// process that takes everything over begins with.
    async fn next_epoch(&self) -> Result<u64>;

    /// Writes records, in order, each as one, all durable when this returns. Answers per record: `Ok`, or
    /// `Fenced` when its epoch is not the one with which the feed was last opened, or
    /// [`Conflict::Feed`](crate::Conflict::Feed) when the feed does not exist any more; then nothing of that one was written. Writing the same
    /// record twice is the same as once. Its counters come back as they are, and of `health` each moment that there is; one
    /// without any may come back as none. From then on the feed belongs to the present log incarnation. The
    /// whole call fails with `Unavailable` when the disk is full: nothing was written. A cancelled call may or
    /// may not be written, but not after a later call for the same feed was answered.
    async fn write(&self, writes: Vec<FeedWrite>) -> Result<Vec<Result<()>>>;

    /// Standings in order of lane and ordinal, with their total.
    async fn standings(&self, list: ListStandings) -> Result<(u64, Vec<(u8, Standing)>)>;

    /// One standing.
    async fn standing(&self, feed: FeedId, ordinal: Ordinal) -> Result<Option<Standing>>;

    /// The note about a document. It is written, and goes, with the record that carries it.
    async fn note(&self, feed: FeedId, ordinal: Ordinal) -> Result<Option<Note>>;

    /// The document as the client last got it, if it was kept under this life and not forgotten since. A state is
    /// written, and goes, with the record that carries it: never one without the other. States of other lives are
    /// as if they were not there; engines may drop them. They go with their subscription.
    async fn state(&self, feed: FeedId, life: u64, ordinal: Ordinal) -> Result<Option<Kept>>;
}
