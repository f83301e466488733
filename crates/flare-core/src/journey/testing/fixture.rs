//! For tests: a delivery thread over the memory engine, and subscriptions of it as the ledger has them. Nothing is dialled
//! as long as the test does not wait.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::Saved;
use flare_model::ids::{FeedId, Seq};
use flare_provider::Opened;
use flare_provider::memory::Memory;
use tokio_util::task::TaskTracker;

use crate::door::{Chance, SystemClock};
use crate::journey::connection::{Dialler, ReadLimits};
use crate::journey::log::pages::Pages;
use crate::journey::log::tail::Tails;
use crate::journey::permits::caps::Caps;
use crate::journey::report::Report;
use crate::journey::subscriber::Standstill;
use crate::journey::subscriber::passive::PassiveLimits;
use crate::journey::thread::opening::TakenOver;
use crate::journey::worker::breaker::BreakerSettings;
use crate::journey::worker::subscribers::FeedPlace;
use crate::journey::worker::{Tools, Worker, WorkerLimits};
use crate::network::Destinations;
use crate::notification::compiled::Compiled;
use crate::observe::{self, Observe, fixture};

const LIMITS: WorkerLimits = WorkerLimits {
    connect_timeout: Duration::from_secs(1),
    idle_timeout: Duration::from_secs(1),
    record_interval: Duration::from_millis(1),
    window: 100,
    waiting_limit: 100,
    issue_block: 100,
    breaker: BreakerSettings { failures: 0, pause: Duration::ZERO, longest: Duration::ZERO },
    failing_after: Duration::from_secs(60),
    disable_after: Duration::ZERO,
    passive: PassiveLimits {
        maximum_lease: Duration::from_secs(60),
        maximum_wait: Duration::from_secs(60),
        waiters: 10,
    },
    state_bytes: 1 << 20,
    state_limit: 1 << 20,
};

/// A delivery thread, and the tails that its lanes read.
pub struct Thread {
    pub worker: Rc<RefCell<Worker>>,
    tails: Tails,
}

impl Thread {
    /// One with nothing to do. It has to live in a `LocalSet`.
    pub fn new() -> Thread {
        let store = Memory::new().store();
        let limits = observe::Limits {
            quantity: 0,
            age: Duration::ZERO,
            bytes: 0,
            sample: 0,
            excerpt: 0,
            watchers: 0,
        };
        let observe = Observe::new(limits, 1.into(), 1);
        let (report, _, _) = Report::new();
        let tools = Tools {
            clock: Arc::new(SystemClock::of_process()),
            chance: Chance::from_seed(1),
            pages: Pages::new(store.documents, 10, 1 << 20),
            ledger: store.ledger,
            dialler: Dialler::tcp(
                Destinations::new(&Default::default(), false),
                crate::tls::client().expect("TLS can be set up"),
            ),
            tenancy: None,
            read_limits: ReadLimits { read: 1024, keep: 1024 },
            limits: LIMITS,
            caps: Arc::new(Caps::new(1, 1, vec![Arc::default()])),
            report,
            desk: observe.desk(0),
            tracer: None,
        };
        let tails = Tails::new(vec![Arc::default()], 1 << 20, observe.counts().clone());
        Thread { worker: Worker::new(0, Arc::new(tools), TaskTracker::new()), tails }
    }

    /// Takes over a subscription with one lane, as the ledger has its feed.
    pub fn open(&self, number: u64, saved: Saved, standstill: Standstill) -> FeedPlace {
        self.open_as(fixture::compiled(number), 1, saved, standstill)
    }

    /// Takes over a subscription that works, with so many lanes.
    pub fn open_lanes(&self, compiled: Arc<Compiled>, lanes: u8, saved: Saved) -> FeedPlace {
        self.open_as(compiled, lanes, saved, Standstill::None)
    }

    fn open_as(&self, compiled: Arc<Compiled>, lanes: u8, saved: Saved, standstill: Standstill) -> FeedPlace {
        let feed = |lane| FeedId { subscription: compiled.number, lane };
        let opened = |lane| Opened { feed: feed(lane), head: saved.cursor, saved: saved.clone() };
        let taken = TakenOver { opened: (0..lanes).map(opened).collect(), epoch: 1 };
        let placement = compiled.placement(1);
        let mut worker = self.worker.borrow_mut();
        worker.open(&self.tails, compiled, taken, standstill, placement, None).feed(0)
    }
}

/// What the ledger has of a feed that may have sent everything up to this mark, and has settled half of it.
pub fn marked(issued: u64) -> Saved {
    Saved { cursor: Seq(issued / 2), issued: Seq(issued), ..Saved::default() }
}
