//! This node among others. In: the coordinator of `flare_provider`, and what happens to the node. Out: what it is to do about
//! units ([`Order`]), and what is known of the cluster ([`Seen`]).
//!
//! What follows from what is decided in `flare_model::cluster`, purely. Here it is driven: `driver` makes calls of its requests,
//! `asking` makes them one by one, `seen` remembers what was seen and since when, and [`Member`] is how the rest of the node looks at it.

mod asking;
mod driver;
mod seen;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flare_model::cluster::keys::{self, NodeRecord};
use flare_model::cluster::life::{Claim, Event, Existing, Settings};
use flare_model::cluster::plan::{Command, Plan, Refusal};
use flare_model::cluster::{NodeId, Reason, SessionId, UnitId};
use flare_provider::{Cluster, Ledger, ProviderError};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

use asking::Asker;
pub use driver::{Driver, Order};
pub use seen::{Alone, Gone, Seen, Skew, Unsettled};

use crate::door::Clock;
use crate::journey::Tenancy;

/// Why units move, and the word for it.
pub const REASONS: [(Reason, &str); 7] = [
    (Reason::Created, "created"),
    (Reason::NodeGone, "nodeGone"),
    (Reason::Drain, "drain"),
    (Reason::Balance, "balance"),
    (Reason::GiveBack, "giveBack"),
    (Reason::Reroute, "reroute"),
    (Reason::Shards, "shards"),
];

/// What a member of a cluster is made of.
pub struct Joining {
    /// How it is set.
    pub settings: Settings,
    /// Nodes of one name in one coordinator are one cluster.
    pub name: String,
    /// What it says of itself.
    pub record: NodeRecord,
    /// The coordinator.
    pub cluster: Arc<dyn Cluster>,
    /// The same for whoever else asks it something.
    pub aside: Arc<dyn Cluster>,
    /// Who gives out epochs.
    pub ledger: Arc<dyn Ledger>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What delivery threads are told.
    pub tenancy: Arc<Tenancy>,
}

/// What a user asks the leader to move, and the way back.
pub(crate) struct Rerouting {
    commands: Vec<Command>,
    dry_run: bool,
    reply: oneshot::Sender<Result<Plan, Rerouted>>,
}

/// Why nothing was moved.
#[derive(Debug)]
pub enum Rerouted {
    /// A command cannot be followed.
    Refused(Refusal),
    /// This node does not lead, or not yet.
    NotLeading,
}

/// What comes to the driver.
pub(crate) enum Word {
    Event(Event),
    Reroute(Rerouting),
}

/// This node in its cluster, for whoever has to know.
pub struct Member {
    /// How it is set.
    pub settings: Settings,
    /// The name of the cluster.
    pub name: String,
    /// What was counted of records that were refused and attempts that were cut.
    pub tenancy: Arc<Tenancy>,
    /// Units that came here, by why.
    moves: [AtomicU64; REASONS.len()],
    words: mpsc::UnboundedSender<Word>,
    record: Mutex<NodeRecord>,
    /// For whoever asks beside the driver.
    aside: Arc<Asker>,
    seen: watch::Receiver<Arc<Seen>>,
}

impl Member {
    /// A member, what drives it, and what it is told to do. Nothing happens before the driver runs.
    pub fn join(joining: Joining) -> (Arc<Member>, Driver, mpsc::UnboundedReceiver<Order>) {
        // Bound: what is told is told once for each unit and each thing that happens to it; nobody waits in the driver.
        let (words, told) = mpsc::unbounded_channel();
        let (orders, obeyed) = mpsc::unbounded_channel();
        let (publish, seen) = watch::channel(Arc::default());
        let owner = joining.settings.node.to_string();
        let (cluster, ledger) = (joining.cluster.clone(), joining.ledger.clone());
        let asker = |cluster| {
            let (ledger, owner) = (ledger.clone(), owner.clone());
            Arc::new(Asker::new(cluster, ledger, owner, &joining.name, joining.settings.renew))
        };
        let (aside, asker) = (asker(joining.aside.clone()), asker(cluster));
        let member = Member {
            settings: joining.settings.clone(),
            name: joining.name.clone(),
            tenancy: joining.tenancy.clone(),
            moves: Default::default(),
            words: words.clone(),
            record: Mutex::new(joining.record.clone()),
            aside,
            seen,
        };
        (Arc::new(member), Driver::new(joining, asker, words, told, orders, publish), obeyed)
    }

    /// Its name.
    pub fn node(&self) -> &NodeId {
        &self.settings.node
    }

    /// What it says of itself.
    pub fn record(&self) -> NodeRecord {
        self.record.lock().clone()
    }

    /// What is known of the cluster.
    pub fn seen(&self) -> Arc<Seen> {
        self.seen.borrow().clone()
    }

    /// Waits until what is known fits, and answers it; nothing when that takes too long.
    pub async fn wait_for(&self, most: Duration, fits: impl FnMut(&Arc<Seen>) -> bool) -> Option<Arc<Seen>> {
        let mut seen = self.seen.clone();
        let fitting = tokio::time::timeout(most, seen.wait_for(fits)).await;
        fitting.ok()?.ok().map(|seen| seen.clone())
    }

    /// Who has the parts of what a unit is a part of, as the coordinator has it now.
    pub async fn claims_beside(&self, unit: &UnitId) -> Result<BTreeMap<UnitId, Claim>, ProviderError> {
        Ok(self.aside.list_below(&keys::of_claims_beside(unit)).await?.claims)
    }

    /// How long a session lasts yet, as the coordinator has it; nothing where that is not said in time.
    pub async fn left(&self, session: &SessionId, patience: Duration) -> Option<Duration> {
        let left = tokio::time::timeout(patience, self.aside.cluster().left(session));
        left.await.ok()?.ok()?
    }

    /// The catalog has these units.
    pub fn units(&self, units: BTreeMap<UnitId, Existing>) {
        self.tell(Event::Units(Arc::new(units)));
    }

    /// What is said of the node changes.
    pub fn describe(&self, change: impl FnOnce(&mut NodeRecord)) {
        let record = {
            let mut record = self.record.lock();
            change(&mut record);
            record.clone()
        };
        self.tell(Event::Describes(record));
    }

    /// The node hands its units over, or takes some again.
    pub fn drain(&self, drains: bool) {
        self.tell(Event::Drains(drains));
    }

    /// The node leaves: its units are handed over, and then its session ends.
    pub fn leave(&self) {
        self.tell(Event::Stops);
    }

    /// Something happened to a unit, or is known of one.
    pub fn tell(&self, event: Event) {
        // The driver lasts as long as the node.
        let _ = self.words.send(Word::Event(event));
    }

    /// A unit came to this node, because of this.
    pub fn counts_move(&self, reason: Reason) {
        if let Some(at) = REASONS.iter().position(|(known, _)| *known == reason) {
            self.moves[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many units came to this node because of this.
    pub fn moved(&self, reason: Reason) -> u64 {
        let at = REASONS.iter().position(|(known, _)| *known == reason);
        at.map_or(0, |at| self.moves[at].load(Ordering::Relaxed))
    }

    /// Has units moved, where this node leads. What comes of it is in the next plan.
    pub async fn reroute(&self, commands: Vec<Command>, dry_run: bool) -> Result<Plan, Rerouted> {
        let (reply, planned) = oneshot::channel();
        let _ = self.words.send(Word::Reroute(Rerouting { commands, dry_run, reply }));
        planned.await.unwrap_or(Err(Rerouted::NotLeading))
    }
}
