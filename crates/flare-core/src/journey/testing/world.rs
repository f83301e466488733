//! For tests: a delivery thread without couriers, over a store in memory that can be made to wait. The test takes the
//! attempts itself and says how each ended, so it decides what happens while what is under way.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_model::document::{Intent, Write};
use flare_model::ids::{FeedId, ResourceId, ResourceNumber, SubscriptionId, SubscriptionNumber};
use flare_model::resource::{Resource, ResourceView};
use flare_model::revision::Revision;
use flare_model::subscription::{Draft, Limits, check};
use flare_model::time::Timestamp;
use flare_provider::faulty::{Fault, Faulty, Plan};
use flare_provider::memory::Memory;
use flare_provider::{EntityKind, ErrorKind, NewEntity, Start, Store};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use crate::bridges::Bridges;
use crate::door::{Chance, Clock, SystemClock};
use crate::journey::asking::progress::Progress;
use crate::journey::bell::Bell;
use crate::journey::connection::{Dialler, ReadLimits};
use crate::journey::log::pages::Pages;
use crate::journey::log::tail::Tails;
use crate::journey::permits::caps::Caps;
use crate::journey::report::Report;
use crate::journey::settling::recorder;
use crate::journey::subscriber::Standstill;
use crate::journey::subscriber::passive::PassiveLimits;
use crate::journey::thread::command::Command;
use crate::journey::thread::obey::obey;
use crate::journey::worker::breaker::BreakerSettings;
use crate::journey::worker::job::Job;
use crate::journey::worker::moments::Lasted;
use crate::journey::worker::{Tools, Worker, WorkerLimits};
use crate::network::Destinations;
use crate::notification::compiled::{Appearance, Compiled};
use crate::notification::ending::Answer;
use crate::notification::ending::Ending;
use crate::observe::{self, Observe};

/// How a world is to be.
#[derive(Clone, Copy)]
pub struct Small {
    /// For every limit that something may stand still for: `window`, `waiting-limit`, `issue-block`, `page-rows`.
    pub limit: usize,
    /// The lanes of the resource.
    pub lanes: u16,
    /// Bytes of the newest changes, and of what is read from the store.
    pub bytes: usize,
}

/// A thread, its store, and a resource.
pub struct World {
    pub worker: Rc<RefCell<Worker>>,
    /// What goes wrong with the store.
    pub plan: Plan,
    pub store: Store,
    pub resource: Arc<Resource>,
    tails: Arc<Tails>,
    bridges: Bridges,
}

impl World {
    /// Runs a test in a world of its own.
    pub fn run<F: Future>(small: Small, test: impl FnOnce(Rc<World>) -> F) -> F::Output {
        // No couriers: the test takes what there is.
        World::run_with(small, 0, Bridges::default(), test)
    }

    /// The same with couriers, as many to a destination as are given, and ways to sinks.
    pub fn run_with<F: Future>(
        small: Small,
        couriers: u32,
        bridges: Bridges,
        test: impl FnOnce(Rc<World>) -> F,
    ) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime for the test");
        tokio::task::LocalSet::new()
            .block_on(&runtime, async { test(World::begin(small, couriers, bridges).await).await })
    }

    /// One that the test has to give its turns, in a `LocalSet`.
    pub async fn begin(small: Small, couriers: u32, bridges: Bridges) -> Rc<World> {
        let plan = Plan::quiet();
        let store = Faulty::wrap(Memory::new().store(), plan.clone());
        let resource = resource(small.lanes);
        let entity = new_entity(EntityKind::Resource, "res", None, small.lanes, Start::Now);
        store.catalog.create(entity).await.expect("an empty catalog");
        let bell: Arc<Bell> = Arc::default();
        let limits = observe::Limits { quantity: 0, age: DAY, bytes: 0, sample: 0, excerpt: 0, watchers: 1 };
        let observe = Observe::new(limits, 1.into(), 1);
        let tails = Arc::new(Tails::new(vec![bell.clone()], small.bytes, observe.counts().clone()));
        store.documents.watch(tails.clone());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::of_process());
        let tools = Tools {
            clock,
            chance: Chance::of_machine(),
            pages: Pages::new(store.documents.clone(), small.limit, small.bytes),
            ledger: store.ledger.clone(),
            dialler: Dialler::tcp(
                Destinations::new(&Default::default(), true),
                crate::tls::client().expect("TLS can be set up"),
            ),
            tenancy: None,
            read_limits: ReadLimits { read: 0, keep: 0 },
            limits: limits_of(small),
            caps: Arc::new(Caps::new(100, couriers, vec![bell.clone()])),
            report: Report::new().0,
            desk: observe.desk(0),
            tracer: None,
        };
        let worker = Worker::new(0, Arc::new(tools), TaskTracker::new());
        tokio::task::spawn_local(recorder::recorder(worker.clone()));
        tokio::task::spawn_local(listen(worker.clone(), bell));
        Rc::new(World { worker, plan, store, resource, tails, bridges })
    }

    /// Has the thread do something.
    pub fn obey(&self, command: Command) {
        obey(&self.worker, &self.tails, command);
    }

    /// Asks the thread something.
    pub async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> T {
        let (reply, answer) = oneshot::channel();
        self.obey(command(reply));
        answer.await.expect("the thread answers")
    }

    /// Creates a subscription, and opens it.
    pub async fn subscribe(&self, more: Value, start: Start) -> SubscriptionNumber {
        self.subscribe_as("sub", more, start).await
    }

    /// The same by another name, where there are several.
    pub async fn subscribe_as(&self, id: &str, more: Value, start: Start) -> SubscriptionNumber {
        let entity = new_entity(EntityKind::Subscription, id, Some("res"), 0, start);
        let number =
            SubscriptionNumber(self.store.catalog.create(entity).await.expect("its name is free").number);
        let lanes: Vec<u8> = self.resource.lanes().map(|lane| lane.index).collect();
        self.open(self.compiled(number, more, 0), &lanes).await;
        number
    }

    /// Opens lanes of a subscription that is in the ledger.
    pub async fn open(&self, compiled: Arc<Compiled>, lanes: &[u8]) {
        let subscription = compiled.number;
        let feeds: Vec<FeedId> = lanes.iter().map(|lane| FeedId { subscription, lane: *lane }).collect();
        let opened = self.store.ledger.open(&feeds, 1).await.expect("nobody has a higher epoch");
        let (placement, standstill) = (compiled.placement(1), Standstill::None);
        let (common, decision) = (None, None);
        let (epoch, fresh) = (1, false);
        self.obey(Command::Open { compiled, opened, epoch, standstill, fresh, placement, common, decision });
    }

    /// The settings of a subscription that gives up after one attempt, unless it says otherwise.
    pub fn compiled(&self, number: SubscriptionNumber, more: Value, filter_changes: u64) -> Arc<Compiled> {
        let mut draft = json!({
            "endpoint": {"url": "http://127.0.0.1:9/"},
            "delivery": {"concurrency": 4, "retry": {"quantity": 1}},
        });
        draft.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let draft: Draft = serde_json::from_value(draft).expect("a draft");
        let limits = Limits {
            default_timeout: DAY,
            maximum_timeout: DAY,
            default_concurrency: 10,
            maximum_concurrency: 100,
            maximum_ttl: DAY,
        };
        let spec = check(&draft, &self.resource, &limits).expect("it is right");
        let (id, agent) = (SubscriptionId::new("sub"), "test");
        Arc::new(Compiled::new(
            id,
            number,
            filter_changes,
            self.resource.clone(),
            spec,
            1,
            Appearance::named(agent, &self.bridges),
        ))
    }

    /// Says a document, or with no revision that it is gone.
    pub async fn say(&self, document: u64, revision: Option<i64>) {
        let url: Arc<str> = format!("http://h/{document}").into();
        let intent = match revision {
            Some(revision) => Intent::Put {
                revision: Revision::Integer(revision),
                content: Bytes::from(json!({"rev": revision}).to_string()),
            },
            None => Intent::Delete { revision: None },
        };
        let (lane, at, routed_by) = (self.resource.lane_of(&url), Timestamp::from_millis(1), u64::MAX);
        let write = Write { lane, url, intent, at, routed_by };
        self.store.documents.commit(vec![write]).await.expect("the log takes it");
    }

    /// The next attempt, if there is one now.
    pub fn take(&self) -> Option<Job> {
        let mut worker = self.worker.borrow_mut();
        let hosts: Vec<usize> = worker.hosts.iter().map(|(host, _)| host).collect();
        hosts.into_iter().find_map(|host| worker.next_job(host))
    }

    /// The next attempt, as soon as there is one.
    pub async fn next(&self) -> Job {
        until("there is an attempt", || self.take()).await
    }

    /// An attempt ends.
    pub fn settle(&self, job: Job, ending: &Ending) {
        let mut worker = self.worker.borrow_mut();
        let (began, now) = (worker.tools.clock.now(), worker.tools.clock.monotonic());
        worker.settle(job, ending, Lasted { began, since: now, until: now });
    }

    /// How a subscription stands.
    pub async fn progress(&self, number: SubscriptionNumber) -> Progress {
        self.ask(|reply| Command::Progress(number, reply)).await.expect("it is there")
    }

    /// Whatever is being read is there.
    pub async fn reads_have_ended(&self) {
        self.plan.heal();
        until("nothing is being read", || self.worker.borrow().tasks.is_empty().then_some(())).await;
    }

    /// From now on the store cannot be read for deliveries: whatever is asked stays under way.
    pub fn hold_reads(&self) {
        for operation in ["documents.scan", "documents.fetch"] {
            self.plan.always(operation, Fault::Before(ErrorKind::Unavailable));
        }
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// The client took it.
pub fn taken() -> Ending {
    Ending::Answered(Answer {
        status: 200,
        fields: flare_wire::Fields::default(),
        excerpt: Vec::new(),
        second: false,
    })
}

/// The client did not answer in time.
pub fn timed_out() -> Ending {
    Ending::Failed { status: None, error: "no answer".to_owned(), sent: true, timed_out: true }
}

/// Waits until something is found, for as long as a busy machine may take.
pub async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..10_000 {
        if let Some(found) = look() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("waited in vain until {what}");
}

/// What a delivery thread listens to, but for commands.
async fn listen(worker: Rc<RefCell<Worker>>, bell: Arc<Bell>) {
    let earlier = worker.borrow().alarms.earlier();
    loop {
        let next = worker.borrow_mut().ring_alarms().unwrap_or(DAY);
        tokio::select! {
            rung = bell.heard() => worker.borrow_mut().rung(rung),
            () = tokio::time::sleep(next) => {}
            () = earlier.notified() => {}
        }
    }
}

fn resource(lanes: u16) -> Arc<Resource> {
    let view = ResourceView {
        id: ResourceId::new("res"),
        endpoint: "http://h/{id}".into(),
        change: serde_json::from_value(json!({"field": "rev"})).expect("a change"),
        lanes,
        created_at: Timestamp::from_millis(0),
    };
    Arc::new(Resource::compile(view, ResourceNumber(1)).expect("it is right"))
}

fn new_entity(kind: EntityKind, id: &str, parent: Option<&str>, lanes: u16, start: Start) -> NewEntity {
    let (keys, body, parent) = (Vec::new(), String::new(), parent.map(ToOwned::to_owned));
    NewEntity {
        kind,
        id: id.to_owned(),
        parent,
        keys,
        body,
        lanes,
        start,
        history: kind == EntityKind::Subscription,
        capture: None,
    }
}

fn limits_of(small: Small) -> WorkerLimits {
    WorkerLimits {
        connect_timeout: DAY,
        idle_timeout: DAY,
        record_interval: Duration::ZERO,
        window: small.limit as u64,
        waiting_limit: small.limit,
        issue_block: small.limit as u64,
        breaker: BreakerSettings { failures: 0, pause: DAY, longest: DAY },
        failing_after: DAY,
        disable_after: Duration::ZERO,
        passive: PassiveLimits { maximum_lease: DAY, maximum_wait: DAY, waiters: 10 },
        state_bytes: small.bytes,
        state_limit: small.bytes,
    }
}
