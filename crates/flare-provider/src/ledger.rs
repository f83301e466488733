//! Ledger: what each client has. One feed per subscription and lane, written by one owner at a time.

use async_trait::async_trait;
use flare_model::feed::{Ahead, Kept, Note, Record, Saved, Standing, State, Sweep, Tally};
use flare_model::ids::{FeedId, LaneId, Ordinal, Seq, SubscriptionNumber};
use flare_model::time::Timestamp;
use roaring::RoaringTreemap;

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

/// What a feed needs of the tombstones of its lane, as far as the ledger knows: that is never less than it needs in truth, since
/// what a feed has settled beyond its last record is settled again after a crash.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedNeeds {
    /// The feed.
    pub feed: FeedId,
    /// Everything up to here is settled, or has a standing.
    pub cursor: Seq,
    /// Documents that the client has, or that have a standing: in doubt, owed, on a lease, or given up.
    pub documents: RoaringTreemap,
    /// Those of them that the client has or may have.
    pub has: RoaringTreemap,
    /// When the client last took something of this lane.
    pub moved_at: Option<Timestamp>,
    /// The numbers are those of another log: nothing of it can be believed but that the client may have anything.
    pub strange: bool,
}

impl FeedNeeds {
    /// The needs of a feed as it would be opened.
    pub fn of(opened: Opened) -> FeedNeeds {
        let Opened { feed, saved, head } = opened;
        let strange = saved.is_of_another_log(head);
        let mut has = &saved.held | &saved.dead_in_doubt;
        let in_doubt = saved.standings.iter().filter(|standing| standing.doubt);
        has.extend(in_doubt.map(|standing| standing.ordinal.0));
        let mut documents = &has | &saved.dead;
        documents.extend(saved.standings.iter().map(|standing| standing.ordinal.0));
        FeedNeeds {
            feed,
            cursor: saved.cursor,
            documents,
            has,
            moved_at: saved.tally.last_success_at,
            strange,
        }
    }
}

/// What a feed that sends every revision owes of the history of its lane, as far as the ledger knows, which is never less than in
/// truth: of what was replaced after `since`, all beyond the cursor that is not settled, and of the documents that are owed all
/// from a change on.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedOwes {
    /// The feed.
    pub feed: FeedId,
    /// The mark of the feed.
    pub since: Seq,
    /// A crash goes back no further than this.
    pub cursor: Seq,
    /// What is settled beyond it.
    pub ahead: Ahead,
    /// In order: documents that wait for a retry, or are on a lease, and of each the first change that is owed.
    pub owed: Vec<(Ordinal, Seq)>,
    /// The numbers are those of another log: nothing of it can be believed.
    pub strange: bool,
}

impl FeedOwes {
    /// What a feed owes as it would be opened; `None` where it does not send every revision.
    pub fn of(opened: Opened) -> Option<FeedOwes> {
        let Opened { feed, saved, head } = opened;
        let strange = saved.is_of_another_log(head);
        let waits = |standing: &&Standing| !matches!(standing.state, State::Doubtful | State::GaveUp);
        let owed = saved.standings.iter().filter(waits);
        Some(FeedOwes {
            feed,
            since: saved.since?,
            cursor: saved.cursor,
            owed: owed.map(|standing| (standing.ordinal, standing.owed_from())).collect(),
            ahead: saved.ahead,
            strange,
        })
    }
}

/// A feed in numbers, as last recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedSummary {
    /// The feed.
    pub feed: FeedId,
    /// The epoch under which it was opened last; 0 before that.
    pub epoch: u64,
    /// Everything up to here is settled, or has a standing.
    pub cursor: Seq,
    /// The newest change of its lane.
    pub head: Seq,
    /// What came of its attempts.
    pub tally: Tally,
    /// How many documents wait for a retry.
    pub waiting: u64,
    /// How many were given up.
    pub dead: u64,
    /// How many documents its client has.
    pub held: u64,
    /// The sweep under way.
    pub sweep: Option<Sweep>,
    /// The numbers are those of another log.
    pub strange: bool,
}

impl FeedSummary {
    /// A feed as it would be opened, which was opened last under this epoch.
    pub fn of(opened: Opened, epoch: u64) -> FeedSummary {
        let Opened { feed, saved, head } = opened;
        let waits = |standing: &&Standing| matches!(standing.state, State::Waiting { .. });
        FeedSummary {
            feed,
            epoch,
            cursor: saved.cursor,
            head,
            waiting: saved.standings.iter().filter(waits).count() as u64,
            dead: saved.dead.len(),
            held: saved.held.len(),
            strange: saved.is_of_another_log(head),
            tally: saved.tally,
            sweep: saved.sweep,
        }
    }
}

/// The ledger.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Takes over feeds: durably raises their epoch to `epoch` and *then* reads them, so that nothing written
    /// under an older epoch is missed and nothing can be written under one any more. Feeds that do not exist
    /// (their subscription is gone) are left out of the answer. `Fenced` when one of them has a higher epoch
    /// already; then none is taken over. The same epoch again is fine.
    async fn open(&self, feeds: &[FeedId], epoch: u64) -> Result<Vec<Opened>>;

    /// A higher epoch than any that was used or given out, also for feeds that are gone, and above 0, given to nobody else: asked
    /// once per claim, after the claim is held, so that the token is made by the store that checks it.
    async fn next_epoch(&self) -> Result<u64>;

    /// Writes records, in order, each as one, all durable when this returns. Answers per record: `Ok`, or
    /// `Fenced` when its epoch is not the one with which the feed was last opened, or
    /// [`Conflict::Feed`](crate::Conflict::Feed) when the feed does not exist any more; then nothing of that one was written. Writing the same
    /// record twice is the same as once. Its counters come back as they are, and of `health` each moment that there is; one
    /// without any may come back as none. From then on the feed belongs to the present log incarnation. The
    /// whole call fails with `Unavailable` when the disk is full: nothing was written. A cancelled call may or
    /// may not be written, but not after a later call for the same feed was answered.
    async fn write(&self, writes: Vec<FeedWrite>) -> Result<Vec<Result<()>>>;

    /// What the feeds of a lane need of its tombstones, in order of subscription, of those beyond `after`, `limit` at most; each
    /// call is one snapshot, and no feed is taken over by it. Of what was there before, a feed needs no more later than it did, unless
    /// it begins again, which the catalog says first: so whoever reads the head of the lane, then the needs of all its feeds, and
    /// removes nothing beyond that head and nothing that they need, removes nothing that is needed.
    async fn needs(&self, lane: LaneId, after: SubscriptionNumber, limit: usize) -> Result<Vec<FeedNeeds>>;

    /// What the feeds of a lane that send every revision owe of its history, likewise: those that do not are left out, and
    /// `limit` counts what is answered.
    async fn owes(&self, lane: LaneId, after: SubscriptionNumber, limit: usize) -> Result<Vec<FeedOwes>>;

    /// The feeds of a subscription in numbers, by lane, in one snapshot: a record interval old at most where its owner lives,
    /// and all there is where it does not answer. None where the subscription is gone.
    async fn summary(&self, subscription: SubscriptionNumber) -> Result<Vec<FeedSummary>>;

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
