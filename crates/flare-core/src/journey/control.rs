//! What the rest of the node asks of a delivery thread, and what a delivery thread tells the node.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use flare_model::document::Row;
use flare_model::feed::{Ahead, Filtering, SweepKind, Tally};
use flare_model::ids::{Ordinal, Seq, SubscriptionId, SubscriptionNumber};
use flare_model::subscription::ReplayLeft;
use flare_model::time::Timestamp;
use flare_provider::{OlderRevision, Opened, ProviderError};
use roaring::RoaringTreemap;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::journey::asking::census::Census;
use crate::journey::asking::examine::{Examined, ListOwed, Owed};
use crate::journey::asking::survey::Survey;
use crate::journey::passive::Ask;
use crate::journey::permits::concurrency::Common;
use crate::journey::sending::errand::Errand;
use crate::journey::sending::trial::{Trial, Tried};
use crate::journey::subscriber::Standstill;
use crate::journey::subscriber::placement::Placement;
use crate::journey::thread::decision::Decision;
use crate::notification::compiled::Compiled;
use crate::notification::host::HostKey;

/// A request to a delivery thread. All of them are small and quick.
pub enum Command {
    /// Takes a subscription over.
    Open {
        /// Its settings.
        compiled: Arc<Compiled>,
        /// Its feeds, or some that come from another thread, as found.
        opened: Vec<Opened>,
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
    /// Whether no sweep of it is under way.
    MaySweep(SubscriptionNumber, oneshot::Sender<bool>),
    /// How it stands.
    Inspect(SubscriptionNumber, oneshot::Sender<Option<Inspection>>),
    /// What is known of these documents, by lane.
    Examine(SubscriptionNumber, Vec<(u8, Row)>, oneshot::Sender<Option<Examined>>),
    /// Which documents it is owed.
    Owed(ListOwed, oneshot::Sender<Option<Owed>>),
    /// Makes everything durable that is known of it.
    Record(SubscriptionNumber, oneshot::Sender<()>),
    /// Begins a sweep; answers false while another one is under way.
    Sweep(SubscriptionNumber, SweepKind, u64, oneshot::Sender<bool>),
    /// Nothing that is known of the client is believed any more: it is given everything again. Answers false
    /// while an attempt is in flight.
    BeginAgain(SubscriptionNumber, oneshot::Sender<bool>),
    /// Owes single documents again, by lane, and has a client that failed probed at once; answers how many.
    Request(SubscriptionNumber, Vec<(u8, Row)>, u64, oneshot::Sender<usize>),
    /// Drops dead letters; answers how many.
    DropDead(SubscriptionNumber, Vec<(u8, Ordinal, Seq)>, oneshot::Sender<usize>),
    /// What it still needs of a lane's tombstones.
    Needs(SubscriptionNumber, u8, oneshot::Sender<Option<Needs>>),
    /// What it still needs of a lane's history; answers `None` when that is nothing.
    Owes(SubscriptionNumber, u8, oneshot::Sender<Option<Owes>>),
    /// Revisions of a lane are about to be removed though they may be owed; answers those that it will not get for that.
    Lose(SubscriptionNumber, u8, Vec<OlderRevision>, oneshot::Sender<Vec<(Ordinal, Seq)>>),
    /// Which documents were given up, by lane.
    Dead(SubscriptionNumber, oneshot::Sender<Vec<(u8, Ordinal)>>),
    /// The wall clock is ahead of the monotonic one by so many milliseconds.
    ClockMoved(i64),
    /// How all of its subscriptions stand.
    Census(oneshot::Sender<Census>),
    /// Which of its subscriptions stand out.
    Survey(oneshot::Sender<Survey>),
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
    /// Finishes what is in flight, records, and ends.
    Stop(oneshot::Sender<()>),
}

/// How a subscription stands.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// Sum over its lanes.
    pub cursor: u64,
    /// Sum over its lanes.
    pub head: u64,
    /// Changes read and not settled, unread ones, and documents that wait.
    pub lagging: u64,
    /// Documents that wait for a retry.
    pub waiting: u64,
    /// Attempts open now.
    pub in_flight: u64,
    /// Documents given up.
    pub dead_letters: u64,
    /// Documents the client has.
    pub held: u64,
    /// Sums over its lanes.
    pub tally: Tally,
    /// The same, if there is or was a filter.
    pub filtering: Option<Filtering>,
    /// When failures began, if nothing has succeeded since.
    pub failing_since: Option<Timestamp>,
    /// The beginning is not through yet.
    pub preparing: bool,
    /// Why everything is gone through, if it is.
    pub sweep: Option<SweepKind>,
    /// It is to be disabled, and begins nothing any more.
    pub decision: Option<Decision>,
    /// A host of its own that does not answer, and when it is tried again.
    pub breaker: Option<(HostKey, Timestamp)>,
    /// By replay: what is left of it.
    pub replays: BTreeMap<u64, ReplayLeft>,
}

/// What a feed needs of its lane's tombstones: those beyond the cursor, and those of these documents.
#[derive(Debug)]
pub struct Needs {
    /// Everything up to here is settled.
    pub cursor: Seq,
    /// Held, doubted, waiting or given up.
    pub documents: RoaringTreemap,
    /// Of one that is disabled, those of them that its client has or may have.
    pub has: RoaringTreemap,
    /// When the client last took something of this lane.
    pub moved_at: Option<Timestamp>,
    /// It began again in this process, because its numbers were those of another log.
    pub begun: bool,
}

/// What a feed needs of its lane's history: of what was replaced after `since`, all beyond the cursor that is not settled,
/// and of the documents that wait all from a change on.
#[derive(Debug)]
pub struct Owes {
    /// The mark of the feed.
    pub since: Seq,
    /// A crash goes back no further than this, once a record is durable that is taken now.
    pub cursor: Seq,
    /// What is settled beyond it, in that record too.
    pub ahead: Ahead,
    /// By document, the first change that is owed.
    pub owed: HashMap<Ordinal, Seq>,
    /// By document, the change in flight: nobody knows yet whether it is still needed.
    pub in_flight: HashMap<Ordinal, Seq>,
}

/// What a delivery thread tells the node.
pub enum Event {
    /// Nothing has succeeded for a while.
    Failing {
        /// Which.
        id: SubscriptionId,
        /// When failures began.
        since: Timestamp,
        /// When this was seen.
        at: Timestamp,
    },
    /// A failing one works again.
    Recovered {
        /// Which.
        id: SubscriptionId,
        /// When this was seen.
        at: Timestamp,
    },
}

/// The way to the node.
#[derive(Clone)]
pub struct Report {
    /// Bound: 1024. When full: the event is dropped with a warning, and the operator is not told of it.
    events: mpsc::Sender<Event>,
    /// Rung when something was decided; the decision itself stays with its subscription.
    decided: Arc<Notify>,
    /// The reason to stop, once there is one.
    fatal: Arc<watch::Sender<Option<String>>>,
}

/// The reason to stop, once there is one.
pub type Fatal = watch::Receiver<Option<String>>;

impl Report {
    /// The way to the node, and its two ends.
    pub fn new() -> (Report, Fatal, mpsc::Receiver<Event>) {
        let (events, received) = mpsc::channel(1024);
        let (sender, fatal) = watch::channel(None);
        (Report { events, decided: Arc::default(), fatal: Arc::new(sender) }, fatal, received)
    }

    /// Something was decided that has to be durable: the node comes for it.
    pub fn decided(&self) {
        self.decided.notify_one();
    }

    /// Returns when something was decided since the last time.
    pub async fn wait_for_decision(&self) {
        self.decided.notified().await;
    }

    /// Nothing has succeeded for a while.
    pub fn failing(&self, id: SubscriptionId, since: Timestamp, at: Timestamp) {
        self.tell(Event::Failing { id, since, at });
    }

    /// A failing subscription works again.
    pub fn recovered(&self, id: SubscriptionId, at: Timestamp) {
        self.tell(Event::Recovered { id, at });
    }

    fn tell(&self, event: Event) {
        if self.events.try_send(event).is_err() {
            tracing::warn!("too many subscriptions fail or recover at once, the operator is not told of one");
        }
    }

    /// Nothing can be trusted to work any more: the node stops.
    pub fn fatal(&self, error: ProviderError) {
        let mut words = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(deeper) = cause {
            words = format!("{words}: {deeper}");
            cause = deeper.source();
        }
        self.fatal.send_if_modified(|reason| {
            let first = reason.is_none();
            if first {
                *reason = Some(words);
            }
            first
        });
    }
}
