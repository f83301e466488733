//! A whole node: a store comes in, and a node that lives until it is stopped or crashes; the same store is found by the
//! next one. What others ask of it runs among its own tasks, stands while it stands, and is lost when it crashes.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flare_core::door::Entropy;
use flare_core::journey::{Dialler, Journey, Plan, Report, Threads};
use flare_core::network::Destinations;
use flare_core::operations::{App, Changes, Identity, Parts};
use flare_core::vault::Vault;
use flare_core::version::Version;
use flare_provider::Store;
use flare_provider::faulty::Faulty;
use flare_provider::memory::Memory;
use tokio::sync::{Notify, oneshot};
use tokio::task::LocalSet;
use tokio_util::task::TaskTracker;

use crate::limits::Limits;
use crate::line::Network;
use crate::stage::Stage;
use crate::turns::Seat;
use crate::weather::Sky;

/// How long it takes until somebody starts the node again.
const AGAIN: Duration = Duration::from_millis(100);

const VERSION: Version = Version { version: "simulated", sha: "", build_time: "" };

/// Where nodes live, one after the other.
pub struct House {
    pub stage: Arc<Stage>,
    pub sky: Sky,
    seat: Rc<RefCell<Seat>>,
    limits: Limits,
    entropy: Entropy,
    memory: RefCell<Memory>,
    /// The node that lives here, once it is ready.
    app: RefCell<Option<Arc<App>>>,
    /// Rung when one is. No `watch`: it wakes those who wait in an order of its own.
    ready: Notify,
    /// How many have ended here.
    lives: Cell<u64>,
    /// One is about to.
    starting: Cell<bool>,
    /// What is being asked of the one that does.
    asked: RefCell<TaskTracker>,
}

impl House {
    pub fn new(
        stage: Arc<Stage>,
        sky: Sky,
        seat: Rc<RefCell<Seat>>,
        limits: Limits,
        entropy: Entropy,
    ) -> Rc<House> {
        let (memory, app) = (RefCell::new(Memory::new()), RefCell::default());
        let (lives, starting, asked, ready) = Default::default();
        Rc::new(House { stage, sky, seat, limits, entropy, memory, app, ready, lives, starting, asked })
    }

    /// Whether a node lives here that answers.
    pub fn is_up(&self) -> bool {
        self.app.borrow().is_some()
    }

    /// Starts a node over what the last one has left, and again until it is ready. One that gives up later is started
    /// again, as a supervisor does with a process that has ended.
    pub async fn start(self: &Rc<House>) {
        if self.starting.replace(true) {
            return;
        }
        let life = self.lives.get();
        let gave_up = self.bring_up().await;
        self.starting.set(false);
        let house = self.clone();
        tokio::task::spawn_local(async move {
            // A node that is gone for another reason says nothing.
            if gave_up.await.is_ok() && house.lives.get() == life {
                house.crash();
                tokio::time::sleep(AGAIN).await;
                Box::pin(house.start()).await;
            }
        });
    }

    async fn bring_up(&self) -> oneshot::Receiver<()> {
        loop {
            let memory = self.memory.borrow().reopen();
            *self.memory.borrow_mut() = memory.clone();
            let plan = self.sky.plan(Arc::downgrade(&self.stage));
            let store = Faulty::wrap(memory.store(), plan);
            let ((ready, started), (gives_up, gave_up)) = (oneshot::channel(), oneshot::channel());
            let (stage, limits, entropy) = (self.stage.clone(), self.limits.clone(), self.entropy.clone());
            let boot = async move {
                if live(stage, limits, entropy, store, ready).await {
                    let _ = gives_up.send(());
                }
            };
            self.asked.replace(TaskTracker::new());
            let tasks = LocalSet::new();
            tasks.spawn_local(boot);
            self.seat.borrow_mut().take(tasks);
            if let Ok(app) = started.await {
                self.stage.note(|| "the node is ready".into());
                self.app.replace(Some(app));
                self.ready.notify_waiters();
                return gave_up;
            }
            // It may have begun to serve what it had read by then.
            drop(self.seat.borrow_mut().clear());
            self.stage.lock().crashed();
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The node is gone without a word; what it has written stays.
    pub fn crash(&self) {
        self.app.replace(None);
        self.lives.set(self.lives.get() + 1);
        // Dropped apart from the seat: whatever is dropped with it looks at nothing here.
        let gone = self.seat.borrow_mut().clear();
        drop(gone);
        let mut inside = self.stage.lock();
        inside.node_stands(false);
        inside.crashed();
    }

    /// The node finishes what it is at, and ends.
    pub async fn stop(&self) {
        let Some(app) = self.app.replace(None) else { return };
        self.stage.note(|| "the node stops".into());
        let (done, stopped) = oneshot::channel();
        let asked = self.asked.borrow().clone();
        self.seat.borrow_mut().spawn(async move {
            app.stop.cancel();
            app.journey.observe().close();
            asked.close();
            asked.wait().await;
            app.journey.stop().await;
            let _ = done.send(());
        });
        let life = self.lives.get();
        let _ = stopped.await;
        // It gave up on the way.
        if self.lives.get() != life {
            return;
        }
        self.lives.set(life + 1);
        drop(self.seat.borrow_mut().clear());
        let mut inside = self.stage.lock();
        inside.note(|| "the node has stopped".into());
        inside.restarts();
    }

    /// The node has no turns any more, or has them again.
    pub fn pause(&self, paused: bool) {
        self.seat.borrow_mut().pause(paused);
        let mut inside = self.stage.lock();
        inside.note(|| (if paused { "the node stands still" } else { "the node goes on" }).into());
        inside.node_stands(paused);
    }

    /// Asks the node that lives here now something. Nothing: the answer was lost, with the node.
    pub async fn ask<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        ask: impl FnOnce(Arc<App>) -> F,
    ) -> Option<T> {
        let app = loop {
            let there = self.app.borrow().clone();
            match there {
                Some(app) => break app,
                None => self.ready.notified().await,
            }
        };
        let (answer, answered) = oneshot::channel();
        let asked = ask(app);
        let asked = self.asked.borrow().track_future(async move {
            let _ = answer.send(asked.await);
        });
        self.seat.borrow_mut().spawn(asked);
        answered.await.ok()
    }
}

/// The life of a node, as `crates/flare/src/node.rs` has it, without HTTP. Whether it ended because it cannot go on.
async fn live(
    stage: Arc<Stage>,
    limits: Limits,
    entropy: Entropy,
    store: Store,
    ready: oneshot::Sender<Arc<App>>,
) -> bool {
    let Limits { config, threads, .. } = limits;
    let clock = stage.time.of_process();
    let (report, mut fatal, events) = Report::new();
    let network = Arc::new(Network(Arc::downgrade(&stage)));
    let dialler = Dialler::Handed(network);
    let mut plan = Plan::new(&config, threads, store.clone(), clock.clone(), dialler, report);
    plan.entropy = entropy.clone();
    plan.kind = Threads::Tasks;
    let journey = match Journey::start(plan).await {
        Ok(journey) => journey,
        Err(error) => {
            stage.note(|| format!("the node does not start: {error}"));
            return false;
        }
    };
    let (app, inboxes) = App::new(Parts {
        about: Identity { version: VERSION, address: config.http.server.addr, settings: Vec::new() },
        destinations: Destinations::new(&config.network, true),
        vault: Vault::open(&config, &entropy).expect("a store in memory needs no file for its key"),
        changes: Changes::new(config.http.server.max_connections),
        config,
        clock,
        entropy,
        store,
        journey,
        events,
        telemetry: None,
        traffic: Arc::default(),
    });
    let app = Arc::new(app);
    if let Err(error) = app.load().await {
        stage.note(|| format!("the node does not start: {error}"));
        return false;
    }
    for chore in app.chores(inboxes) {
        tokio::task::spawn_local(chore.run());
    }
    let _ = ready.send(app);
    let Ok(reason) = fatal.wait_for(Option::is_some).await else { return false };
    // Whatever goes wrong here passes, and a store that is unavailable for a while is waited for.
    stage.wrong(format!("the node gives up: {}", reason.as_deref().unwrap_or_default()));
    true
}
