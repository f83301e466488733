//! The plan of a faulty store: what a test wants to go wrong comes in; one fault, or none, goes out per call.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::error::ErrorKind;

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails and nothing was done.
    Before(ErrorKind),
    /// It is done and the answer is lost: the caller gets this error instead. An error of the engine's own is
    /// answered as it is.
    After(ErrorKind),
    /// It is begun and then dropped where it first waits, as when the caller's task is cancelled: it may have
    /// been done or not.
    Cancelled(ErrorKind),
    /// It is done later.
    Delayed(Duration),
    /// It is done after a while, and answered another while after that.
    Slow {
        /// Until it is done.
        before: Duration,
        /// From then until the answer.
        after: Duration,
    },
    /// The same, and the answer is lost in the end.
    Lost {
        /// Until it is done.
        before: Duration,
        /// From then until the caller gets the error.
        after: Duration,
        /// What the caller gets instead of the answer; an error of the engine's own is answered as it is.
        kind: ErrorKind,
    },
}

/// Says of each call what it meets.
type Drawing = Box<dyn FnMut(&'static str) -> Option<Fault> + Send>;

/// How often a seeded plan strikes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Odds {
    /// Of a hundred calls, so many meet a fault.
    pub percent: u8,
    /// One of these, each as likely as the others.
    pub faults: Vec<Fault>,
}

/// Which calls meet which fault. Clones share one plan.
#[derive(Clone, Default)]
pub struct Plan {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    /// One-time faults by operation, first in, first out. Bound: what the test puts in.
    scripted: BTreeMap<&'static str, VecDeque<Fault>>,
    standing: BTreeMap<&'static str, Fault>,
    drawing: Option<Drawing>,
    odds: Option<Odds>,
    chance: u64,
    met: BTreeMap<&'static str, u64>,
}

/// What can be planned for: every method that can fail, by the name its errors carry.
const OPERATIONS: [&str; 35] = [
    "catalog.create",
    "catalog.replace",
    "catalog.delete",
    "catalog.get",
    "catalog.list",
    "catalog.version",
    "catalog.changes",
    "catalog.forget_deletions",
    "documents.incarnation",
    "documents.commit",
    "documents.get",
    "documents.fetch",
    "documents.scan",
    "documents.lanes",
    "documents.lanes_of",
    "documents.begin_sweeping",
    "documents.tombstones",
    "documents.remove_tombstones",
    "ledger.open",
    "ledger.next_epoch",
    "ledger.write",
    "ledger.needs",
    "ledger.owes",
    "ledger.summary",
    "ledger.standings",
    "ledger.standing",
    "cluster.grant",
    "cluster.renew",
    "cluster.end",
    "cluster.left",
    "cluster.put_if_absent",
    "cluster.put_if",
    "cluster.delete_if",
    "cluster.list",
    "cluster.watch",
];

impl Plan {
    /// Nothing goes wrong until something is planned.
    pub fn quiet() -> Plan {
        Plan::default()
    }

    /// Any call may meet a fault, the same ones for the same seed and order of calls.
    pub fn seeded(seed: u64, odds: Odds) -> Plan {
        let plan = Plan::default();
        {
            let mut shared = plan.shared.lock();
            shared.chance = seed;
            shared.odds = Some(odds);
        }
        plan
    }

    /// Every call meets what this says of it, unless something else is planned for that call.
    pub fn drawn_by(draw: impl FnMut(&'static str) -> Option<Fault> + Send + 'static) -> Plan {
        let plan = Plan::default();
        plan.shared.lock().drawing = Some(Box::new(draw));
        plan
    }

    /// The next call of the operation that has nothing planned yet meets this.
    pub fn once(&self, operation: &'static str, fault: Fault) {
        self.shared.lock().scripted.entry(known(operation)).or_default().push_back(fault);
    }

    /// Every call of the operation meets this, after those planned one by one.
    pub fn always(&self, operation: &'static str, fault: Fault) {
        self.shared.lock().standing.insert(known(operation), fault);
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        let mut shared = self.shared.lock();
        shared.scripted.clear();
        shared.standing.clear();
        shared.drawing = None;
        shared.odds = None;
    }

    /// How many calls of the operation met a fault so far.
    pub fn met(&self, operation: &'static str) -> u64 {
        self.shared.lock().met.get(known(operation)).copied().unwrap_or(0)
    }

    pub(super) fn draw(&self, operation: &'static str) -> Option<Fault> {
        let mut shared = self.shared.lock();
        let scripted = shared.scripted.get_mut(operation).and_then(VecDeque::pop_front);
        let planned = scripted.or_else(|| shared.standing.get(operation).cloned());
        let drawn = planned.or_else(|| shared.drawing.as_mut().and_then(|draw| draw(operation)));
        let fault = drawn.or_else(|| shared.by_chance())?;
        *shared.met.entry(operation).or_default() += 1;
        Some(fault)
    }
}

impl Shared {
    fn by_chance(&mut self) -> Option<Fault> {
        let struck = self.roll() % 100;
        let which = self.roll();
        let odds = self.odds.as_ref()?;
        let among = (odds.faults.len() as u64).max(1);
        odds.faults.get((which % among) as usize).cloned().filter(|_| struck < u64::from(odds.percent))
    }

    /// SplitMix64: small, seeded, and good enough to choose faults with.
    fn roll(&mut self) -> u64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.chance;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A plan for an operation that does not exist would never strike, and its test would prove nothing.
fn known(operation: &'static str) -> &'static str {
    assert!(OPERATIONS.contains(&operation), "no operation is called {operation}");
    operation
}
