//! What the rest of the node asks of a delivery thread, and what a delivery thread tells the node.

use std::sync::Arc;

use flare_model::document::Row;
use flare_model::feed::{Standing, SweepKind};
use flare_model::ids::{Ordinal, Seq, SubscriptionId, SubscriptionNumber};
use flare_model::time::Timestamp;
use flare_provider::{OlderRevision, Opened};
use tokio::sync::oneshot;

use crate::journey::asking::census::Census;
use crate::journey::asking::documents::{KnownOfDocuments, ListOwed, Owed};
use crate::journey::asking::needs::{RevisionsNeeded, TombstonesNeeded};
use crate::journey::asking::notable::NotableOnes;
use crate::journey::asking::progress::Progress;
use crate::journey::merge::Merge;
use crate::journey::passive::Ask;
use crate::journey::permits::concurrency::Common;
use crate::journey::sending::errand::Errand;
use crate::journey::sending::trial::{Trial, Tried};
use crate::journey::subscriber::Standstill;
use crate::journey::subscriber::decision::Decision;
use crate::journey::subscriber::placement::Placement;
use crate::notification::compiled::Compiled;

/// A request to a delivery thread. All of them are small and quick.
pub enum Command {
    /// Takes a subscription over.
    Open {
        /// Its settings.
        compiled: Arc<Compiled>,
        /// Its feeds, or some that come from another thread, as found.
        opened: Vec<Opened>,
        /// Under which they were opened: every record carries it.
        epoch: u64,
        /// Whether it may work.
        standstill: Standstill,
        /// It was created just now: changes are about to come, so its marks are raised at once.
        fresh: bool,
        /// How it is spread, or about to be.
        placement: Placement,
        /// What it shares with other threads, if there are any.
        common: Option<Arc<Common>>,
        /// What the thread that lanes come from decided, and is not durable yet.
        decision: Option<Decision>,
    },
    /// The settings have changed.
    Replace(Arc<Compiled>),
    /// Stops or lets go.
    Stand {
        /// Which subscription.
        number: SubscriptionNumber,
        /// From now on.
        standstill: Standstill,
        /// How long it stood still, which does not count against the time to live of what waits.
        paused_since: Option<Timestamp>,
    },
    /// The subscription is deleted; answers when nothing of it begins any more.
    Remove(SubscriptionNumber, oneshot::Sender<()>),
    /// It is about to be spread so, and shares this with other threads.
    Place(Placement, Option<Arc<Common>>),
    /// Lanes of it are about to go to other threads: begins nothing more of them, and answers for each when nothing of
    /// it is in flight.
    Drain(SubscriptionNumber, Vec<(u8, oneshot::Sender<()>)>),
    /// Lets go of lanes, after a drain: answers when all that is known of them is durable and they are gone here, with
    /// what was decided and is not durable yet.
    Release(SubscriptionNumber, Vec<u8>, oneshot::Sender<Option<Decision>>),
    /// Lets go of lanes at once: what is open is cut off, and nothing more is written. Answers when nothing of them runs.
    Cut(SubscriptionNumber, Vec<u8>, oneshot::Sender<()>),
    /// Whether no sweep of it is under way.
    MaySweep(SubscriptionNumber, oneshot::Sender<bool>),
    /// How it stands.
    Progress(SubscriptionNumber, oneshot::Sender<Option<Progress>>),
    /// What is known of these documents, by lane.
    KnownOf(SubscriptionNumber, Vec<(u8, Row)>, oneshot::Sender<Option<KnownOfDocuments>>),
    /// Which documents it is owed.
    Owed(ListOwed, oneshot::Sender<Option<Owed>>),
    /// Makes everything durable that is known of it.
    Record(SubscriptionNumber, oneshot::Sender<()>),
    /// Begins a sweep; answers false while another one is under way.
    Sweep(SubscriptionNumber, SweepKind, u64, oneshot::Sender<bool>),
    /// Nothing that is known of the client is believed any more: it is given everything again. Answers false
    /// while an attempt is in flight.
    BeginAgain(SubscriptionNumber, oneshot::Sender<bool>),
    /// Owes single documents again, and has a client that failed probed at once.
    Request(SubscriptionNumber, Vec<AskedFor>, u64, oneshot::Sender<Requested>),
    /// Drops dead letters, as the ledger has them; answers how many.
    DropDead(SubscriptionNumber, Vec<(u8, Standing)>, oneshot::Sender<usize>),
    /// What it still needs of a lane's tombstones.
    TombstonesNeeded(SubscriptionNumber, u8, oneshot::Sender<Option<TombstonesNeeded>>),
    /// What it still needs of a lane's history; answers `None` when that is nothing.
    RevisionsNeeded(SubscriptionNumber, u8, oneshot::Sender<Option<RevisionsNeeded>>),
    /// Revisions of a lane are about to be removed though they may be owed; answers those that it will not get for that.
    Lose(SubscriptionNumber, u8, Vec<OlderRevision>, oneshot::Sender<Vec<(Ordinal, Seq)>>),
    /// Which documents were given up, by lane.
    Dead(SubscriptionNumber, oneshot::Sender<Vec<(u8, Ordinal)>>),
    /// The wall clock is ahead of the monotonic one by so many milliseconds.
    ClockMoved(i64),
    /// How all of its subscriptions stand.
    Census(oneshot::Sender<Census>),
    /// Which of its subscriptions stand out.
    Notable(oneshot::Sender<NotableOnes>),
    /// Sends something that is no notification.
    Errand(Box<Errand>),
    /// What a passive subscription is asked for, and the leases it gave.
    Passive(SubscriptionNumber, Ask),
    /// Sends a test, which nothing is recorded of.
    Try(Box<Trial>, oneshot::Sender<Tried>),
    /// The subscriptions about which something was decided that is not durable yet.
    Decided(oneshot::Sender<Vec<SubscriptionId>>),
    /// What was decided about this one.
    Decision(SubscriptionNumber, oneshot::Sender<Option<Decision>>),
    /// Answers: the thread is at work.
    Answer(oneshot::Sender<()>),
    /// Finishes what is in flight, records, and ends.
    Stop(oneshot::Sender<()>),
}

/// A document that is to be sent again, as the store had it.
#[derive(Clone, Copy, Debug)]
pub struct AskedFor {
    /// Its lane.
    pub lane: u8,
    /// What the store had of it.
    pub row: Row,
    /// The newest change of the lane when the store was asked.
    pub head: Seq,
}

/// What became of documents that were asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// How many are owed again.
    pub taken: usize,
    /// Those, by lane, of which nobody can tell any more whether the row is the newest: the store has to be asked again.
    pub unsure: Vec<(u8, Ordinal)>,
}

impl Merge for Requested {
    fn merge(mut self, other: Requested) -> Requested {
        self.taken += other.taken;
        self.unsure.extend(other.unsure);
        self
    }
}
