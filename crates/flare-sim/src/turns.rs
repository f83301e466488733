//! Who goes on when several could: the parts of a simulation come in, each with tasks of its own; whenever something has
//! happened all of them have a turn, in an order drawn from the seed, until the schedule is through.
//!
//! A node that is paused has no turn, however much has happened to it. One that crashes is dropped with all its tasks.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use flare_promises::dice::Dice;
use tokio::task::{JoinError, JoinHandle, LocalSet};

use crate::clock::Time;

/// Where a node sits while it lives. Only those outside of it reach for it.
#[derive(Default)]
pub struct Seat {
    tasks: Option<LocalSet>,
    paused: bool,
    /// It has something to do of which nothing told yet.
    stirred: bool,
}

impl Seat {
    /// A node sits down.
    pub fn take(&mut self, tasks: LocalSet) {
        *self = Seat { tasks: Some(tasks), paused: false, stirred: true };
    }

    /// The node leaves without a word: whatever it was doing is not done.
    pub fn clear(&mut self) -> Option<LocalSet> {
        self.paused = false;
        self.tasks.take()
    }

    /// Whether it has no turns.
    pub fn is_paused(&self) -> bool {
        self.paused && self.tasks.is_some()
    }

    /// It has no turns any more, or has them again.
    pub fn pause(&mut self, paused: bool) {
        (self.paused, self.stirred) = (paused, true);
    }

    /// Gives it something more to do.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + 'static) {
        if let Some(tasks) = &self.tasks {
            tasks.spawn_local(task);
            self.stirred = true;
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) {
        self.stirred = false;
        if let Some(tasks) = self.tasks.as_mut().filter(|_| !self.paused) {
            let _ = Pin::new(tasks).poll(context);
        }
    }
}

/// All parts of a simulation.
pub struct Turns<T> {
    /// The schedule, one of the tasks below.
    pub schedule: JoinHandle<T>,
    /// Tasks of origins and operators.
    pub origins: LocalSet,
    /// Tasks of clients.
    pub clients: LocalSet,
    /// Where nodes sit.
    pub nodes: Vec<Rc<RefCell<Seat>>>,
    pub dice: Dice,
    pub time: Time,
    /// When there was the last turn, and how many there were at that moment.
    pub last: (Duration, u64),
}

/// Why a schedule was not played to its end.
#[derive(Debug)]
pub enum Broken {
    /// It took longer than this, by its own clock.
    Long(Duration),
    /// So many turns were taken, and no time passed.
    Spinning(u64),
    /// The schedule itself panicked.
    Schedule(JoinError),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Long(time) => write!(f, "it is not over after {time:?} of its own time"),
            Broken::Spinning(turns) => write!(f, "{turns} turns were taken, and no time passed"),
            Broken::Schedule(error) => write!(f, "the schedule itself broke: {error}"),
        }
    }
}

/// A schedule takes seconds, and minutes to come to rest.
const LONGEST: Duration = Duration::from_secs(3600);

/// At one moment there are some hundred turns at most.
const MOST_TURNS: u64 = 3_000;

/// Origins, clients, and nodes.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

impl<T> Turns<T> {
    /// Who goes on first, who second, and so on.
    fn order(&mut self) -> Vec<usize> {
        if self.nodes.len() == 1 {
            return self.dice.pick(&ORDERS).to_vec();
        }
        let mut order: Vec<usize> = (0..self.nodes.len() + 2).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, self.dice.below(place as u64 + 1) as usize);
        }
        order
    }
}

impl<T> Future for Turns<T> {
    type Output = Result<T, Broken>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let now = this.time.passed();
        this.last = if this.last.0 == now { (now, this.last.1 + 1) } else { (now, 0) };
        if this.last.1 > MOST_TURNS {
            return Poll::Ready(Err(Broken::Spinning(MOST_TURNS)));
        }
        if now > LONGEST {
            return Poll::Ready(Err(Broken::Long(LONGEST)));
        }
        for part in this.order() {
            match part {
                0 => drop(Pin::new(&mut this.origins).poll(context)),
                1 => drop(Pin::new(&mut this.clients).poll(context)),
                node => this.nodes[node - 2].borrow_mut().poll(context),
            }
        }
        if this.nodes.iter().any(|node| node.borrow().stirred) {
            context.waker().wake_by_ref();
        }
        Pin::new(&mut this.schedule).poll(context).map_err(Broken::Schedule)
    }
}
