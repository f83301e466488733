//! Documents: the newest state of each, ordered by change within a lane. That order is the log.

use std::sync::Arc;

use async_trait::async_trait;
use flare_model::document::{Document, Outcome, Write};
use flare_model::ids::{LaneId, Ordinal, ResourceNumber, Seq};
use flare_model::time::Timestamp;
use roaring::RoaringTreemap;

use crate::error::Result;

/// What became of one write.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// What to tell the origin. Whatever it is, the row it was compared with is durable.
    pub outcome: Outcome,
    /// The newest change of its lane as this write found it, those of the same commit before it included.
    pub before: Seq,
    /// The newest change of its lane after this write: the next one where it changed something, and otherwise `before`. So a
    /// caller that knew the lane up to `before` of its first write there knows it up to `after` of the last, and any other one
    /// hears from it that there is more to read.
    pub after: Seq,
}

/// Hears of the changes of its own process right after they are durable and before their writers are answered, in the order of
/// their seqs within each lane, each once. Called on the engine's own thread: it must be quick and must not block.
///
/// Of what other processes commit it hears nothing, but it can tell: of each lane, the changes of one call follow each other
/// without a gap, and the [head before](Changed::head_before) the first of them is what the lane was when they were committed. Whoever has the
/// lane up to there has it up to the last of them; for whoever has not, the others wrote what is in between, and a
/// [scan](Documents::scan) finds what is left of it.
pub trait Witness: Send + Sync {
    /// These changes are durable now.
    fn committed(&self, changes: Vec<Changed>);
}

/// A change, as a witness hears of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The document as it is from now on.
    pub document: Document,
    /// The change of the document that was its newest before; 0 where there was none.
    pub replaced: Seq,
}

impl Changed {
    /// The newest change of its lane just before this one: a lane gives out each seq once, and the next one each time.
    pub fn head_before(&self) -> Seq {
        Seq(self.document.row.seq.0 - 1)
    }
}

/// Which changes of a lane are the newest of their documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Newest {
    /// All of them.
    pub seqs: RoaringTreemap,
    /// Those of them that are tombstones.
    pub tombstones: RoaringTreemap,
}

/// What to read of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanLane {
    /// The lane.
    pub lane: LaneId,
    /// Only changes beyond this one.
    pub after: Seq,
    /// Only changes up to this one; `Seq(u64::MAX)` for all.
    pub upto: Seq,
    /// At most so many documents.
    pub rows: usize,
    /// Stop after the document with which the contents reach this size: the first one comes in any case.
    pub bytes: usize,
}

/// A part of a lane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// In order of seq.
    pub documents: Vec<Document>,
    /// Every change beyond `after` up to here that was some document's newest is in this page or an earlier
    /// one. When nothing is left it is the smaller of `upto` and the head.
    pub upto: Seq,
    /// The newest change of the lane in the snapshot that was read: the page knows of nothing beyond it.
    pub head: Seq,
}

/// A lane at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneState {
    /// The lane.
    pub lane: LaneId,
    /// Its newest change.
    pub head: Seq,
    /// How many live documents it has.
    pub documents: u64,
    /// How many tombstones.
    pub tombstones: u64,
    /// How many older revisions it keeps.
    pub revisions: u64,
}

/// An older revision that a lane keeps, without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OlderRevision {
    /// Of which document.
    pub ordinal: Ordinal,
    /// The change that made it.
    pub seq: Seq,
    /// The change that replaced it.
    pub until: Seq,
    /// When it was replaced.
    pub replaced_at: Timestamp,
}

/// The log.
#[async_trait]
pub trait Documents: Send + Sync {
    /// The id of this log: another one after a restore, or a failover that lost a tail. It is asked of the store each time, not
    /// remembered: a failover may change it under a running process. Then feeds are opened again, and what is in memory
    /// of the log is not believed any more.
    async fn incarnation(&self) -> Result<u64>;

    /// What the sequences that clients are told count on from: above all that an earlier incarnation may have given out, so
    /// that a client which ignores lower ones hears of what is true after a restore. 0 where nothing was restored.
    fn sequences_from(&self) -> u64 {
        0
    }

    /// From now on this one hears of every change of this process. One witness; a second call replaces it.
    fn watch(&self, witness: Arc<dyn Witness>);

    /// Commits a batch, in order, as one. Each item is compared inside the commit by
    /// [`flare_model::document::apply`]; calls from many tasks share commits. A lane gives out seqs from 1 and
    /// ordinals from 0, each the next one, and only for what changes something. `Err` per item only with
    /// [`Conflict::Lane`](crate::Conflict::Lane): its lane does not exist (any more), or
    /// [`Conflict::RevisionKind`](crate::Conflict::RevisionKind): the document has integers and this is a date, or the
    /// other way round. The whole call fails with `Unavailable`
    /// when too much is waiting or the disk is full: nothing of it was written. A cancelled call may or may
    /// not have been written.
    ///
    /// The whole call fails with [`Conflict::Routing`](crate::Conflict::Routing), and nothing of it is written, when one of its items was
    /// [routed by](Write::routed_by) an older version of the catalog than the one that last gave urls to another
    /// resource: by creating one with a [`Capture`](crate::Capture), or by deleting one. Whole, since the items of a
    /// batch have an order. The caller routes again, by the present catalog.
    async fn commit(&self, batch: Vec<Write>) -> Result<Vec<Result<Committed>>>;

    /// One document by its url, tombstones too. Here and below, a lane that does not exist reads as an empty one.
    async fn get(&self, lane: LaneId, url: &str) -> Result<Option<Document>>;

    /// Documents by their ordinals, tombstones too, each `None` where there is none, and the lane's head in the
    /// snapshot that was read.
    async fn fetch(&self, lane: LaneId, ordinals: &[Ordinal]) -> Result<(Vec<Option<Document>>, Seq)>;

    /// A part of a lane in order. Bounded work: call again with `after` = the page's `upto`.
    async fn scan(&self, scan: ScanLane) -> Result<Page>;

    /// Like [`Documents::scan`], and with the older revisions that the lane keeps, of those that were replaced by a
    /// change beyond `since`. A lane keeps what is replaced while a subscription of its resource has
    /// [`NewEntity::history`](crate::NewEntity::history), from the commit on that says so, and until it is removed.
    async fn scan_revisions(&self, scan: ScanLane, since: Seq) -> Result<Page>;

    /// For each document and seq: the first revision of that document at or beyond that seq, of those that
    /// [`Documents::scan_revisions`] would give; and the lane's head in a snapshot no newer than what was read.
    async fn next_revisions(
        &self,
        lane: LaneId,
        since: Seq,
        wanted: &[(Ordinal, Seq)],
    ) -> Result<(Vec<Option<Document>>, Seq)>;

    /// The older revisions that a lane keeps, by ordinal and seq, beyond `after`, `limit` at most.
    async fn revisions(
        &self,
        lane: LaneId,
        after: Option<(Ordinal, Seq)>,
        limit: usize,
    ) -> Result<Vec<OlderRevision>>;

    /// Removes older revisions, durably. Answers how many of them were there. The newest ones are not touched. `Fenced` when
    /// another sweeper has [begun](Documents::begin_sweeping): nothing more is removed then.
    async fn remove_revisions(&self, sweeper: u64, lane: LaneId, revisions: &[(Ordinal, Seq)])
    -> Result<u64>;

    /// The changes of a lane that are the newest of their documents, in one snapshot. It costs some bytes for each
    /// document: for counting, not for each question.
    async fn newest(&self, lane: LaneId) -> Result<Newest>;

    /// All lanes of all resources.
    async fn lanes(&self) -> Result<Vec<LaneState>>;

    /// The lanes of one resource, in order of their index; none where there is no such resource.
    async fn lanes_of(&self, resource: ResourceNumber) -> Result<Vec<LaneState>>;

    /// From now on who sweeps under this epoch, which the [ledger](crate::Ledger::next_epoch) has given out, removes what nobody needs, and
    /// nobody else does: when this is answered it is durable, and what was being removed under an older one is either gone or never
    /// will be. So a sweeper that was suspended cannot act on what it knew. `Fenced` when one with a higher epoch
    /// has begun; the same again is fine.
    async fn begin_sweeping(&self, sweeper: u64) -> Result<()>;

    /// The tombstones that [`Documents::remove_tombstones`] would remove, in order of seq.
    async fn tombstones(
        &self,
        lane: LaneId,
        upto: Seq,
        accepted_before: Timestamp,
        keep: &RoaringTreemap,
        limit: usize,
    ) -> Result<Vec<(Ordinal, Seq)>>;

    /// Removes tombstones of a lane with a seq up to `upto` that were accepted before `accepted_before`, except
    /// the ordinals in `keep`, at most `limit`, in order of seq. Answers how many went. The head stays, and
    /// their ordinals are never reused. `Fenced` when another sweeper has [begun](Documents::begin_sweeping): nothing more is
    /// removed then.
    async fn remove_tombstones(
        &self,
        sweeper: u64,
        lane: LaneId,
        upto: Seq,
        accepted_before: Timestamp,
        keep: &RoaringTreemap,
        limit: usize,
    ) -> Result<u64>;
}
