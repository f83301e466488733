//! The place of one node: lives begin there and end, one after the other. What others ask of the node runs among its own
//! tasks, stands while it stands, and is lost when it crashes.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use flare_core::operations::App;
use flare_model::cluster::NodeId;
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio_util::task::TaskTracker;

use super::{AGAIN, House};
use crate::clock::Machine;
use crate::node;
use crate::stage::Stage;
use crate::together::tenures::Sender;
use crate::together::ways::Ways;
use crate::turns::Seat;

/// Where a node lives, one life after the other.
pub struct Place {
    number: usize,
    /// The node whose name it has.
    called: Cell<usize>,
    /// Another process has its name too.
    pub namesake: Rc<Cell<bool>>,
    pub machine: Machine,
    /// Of a thousand milliseconds its machine counts so many too many.
    pub drift: i32,
    pub ways: Ways,
    seat: Rc<RefCell<Seat>>,
    /// The node that lives here, once it is ready.
    app: RefCell<Option<Arc<App>>>,
    /// How many have ended here.
    lives: Cell<u64>,
    /// One is about to.
    starting: Cell<bool>,
    /// What is being asked of the one that does.
    asked: RefCell<TaskTracker>,
}

impl Place {
    pub fn new(number: usize, seat: Rc<RefCell<Seat>>, machine: Machine, drift: i32) -> Place {
        let (called, namesake) = (Cell::new(number), Rc::default());
        let (ways, app, lives, starting, asked) = Default::default();
        Place { number, called, namesake, machine, drift, ways, seat, app, lives, starting, asked }
    }

    /// What the node is called that lives here.
    pub fn name(&self) -> NodeId {
        NodeId::new(format!("node-{}", self.called.get()))
    }

    /// The next node that lives here has the name of another place's.
    pub fn is_called(&self, number: usize) {
        self.called.set(number);
    }

    /// Whether a node lives here that answers.
    pub fn is_up(&self) -> bool {
        self.app.borrow().is_some()
    }

    /// The node that lives here.
    pub fn app(&self) -> Option<Arc<App>> {
        self.app.borrow().clone()
    }

    /// How many lives have ended here.
    pub fn life(&self) -> u64 {
        self.lives.get()
    }

    /// The life that is lived here now.
    pub fn sender(&self) -> Sender {
        Sender { node: self.number, life: self.life() }
    }

    /// Whether a node should be started here; from now on one is.
    pub fn may_start(&self) -> bool {
        !self.is_up() && !self.starting.replace(true)
    }

    /// Starts a node, and again until it is ready. Answers what tells that it gives up.
    pub async fn bring_up(&self, house: &House) -> oneshot::Receiver<()> {
        loop {
            let ((ready, started), (gives_up, gave_up)) = (oneshot::channel(), oneshot::channel());
            let parts = node::Parts::of(house, self);
            let boot = async move {
                if node::live(parts, ready).await {
                    let _ = gives_up.send(());
                }
            };
            self.asked.replace(TaskTracker::new());
            let tasks = LocalSet::new();
            tasks.spawn_local(boot);
            self.seat.borrow_mut().take(tasks);
            if let Ok(app) = started.await {
                house.stage.note(|| self.says(house, "is ready"));
                self.app.replace(Some(app));
                self.starting.set(false);
                return gave_up;
            }
            // It may have begun to serve what it had read by then.
            drop(self.seat.borrow_mut().clear());
            self.lives.set(self.lives.get() + 1);
            house.stage.lock().crashed(self.number);
            tokio::time::sleep(AGAIN).await;
        }
    }

    fn says(&self, house: &House, what: &str) -> String {
        match house.together {
            Some(_) => format!("{} {what}", self.name()),
            None => format!("the node {what}"),
        }
    }

    /// The node is gone without a word.
    pub fn crash(&self, stage: &Stage) {
        self.app.replace(None);
        self.lives.set(self.lives.get() + 1);
        // Dropped apart from the seat: whatever is dropped with it looks at nothing here.
        let gone = self.seat.borrow_mut().clear();
        drop(gone);
        let mut inside = stage.lock();
        inside.node_stands(self.number, false);
        inside.crashed(self.number);
    }

    /// The node finishes what it is at, and ends.
    pub async fn stop(&self, stage: &Stage) {
        let Some(app) = self.app.replace(None) else { return };
        stage.note(|| format!("node {} stops", self.number));
        let (done, stopped) = oneshot::channel();
        let asked = self.asked.borrow().clone();
        self.seat.borrow_mut().spawn(async move {
            app.leave_cluster().await;
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
        let mut inside = stage.lock();
        inside.note(|| format!("node {} has stopped", self.number));
        inside.stopped(self.number);
    }

    /// Whether it has no turns.
    pub fn stands(&self) -> bool {
        self.seat.borrow().is_paused()
    }

    /// The node has no turns any more, or has them again.
    pub fn pause(&self, stage: &Stage, paused: bool) {
        self.seat.borrow_mut().pause(paused);
        let mut inside = stage.lock();
        let what = if paused { "stands still" } else { "goes on" };
        inside.note(|| format!("node {} {what}", self.number));
        inside.node_stands(self.number, paused);
    }

    /// Asks the node that lives here now something. Nothing: there is none, or the answer was lost with it.
    pub async fn ask<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        ask: impl FnOnce(Arc<App>, Sender) -> F,
    ) -> Option<T> {
        let app = self.app()?;
        let (answer, answered) = oneshot::channel();
        let asked = ask(app, self.sender());
        let asked = self.asked.borrow().track_future(async move {
            let _ = answer.send(asked.await);
        });
        self.seat.borrow_mut().spawn(asked);
        answered.await.ok()
    }
}
