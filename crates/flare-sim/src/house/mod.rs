//! Where nodes live: a schedule says what happens to them, and asks them. One node, or several that are a cluster; the store
//! outlives them all.

mod asking;
mod place;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flare_core::door::Entropy;
use flare_promises::dice::Dice;
use flare_provider::memory::Memory;
use tokio::sync::Notify;

pub use place::Place;

use crate::limits::Limits;
use crate::stage::Stage;
use crate::together::Together;
use crate::turns::Seat;
use crate::weather::Sky;

/// How long it takes until somebody starts a node again.
const AGAIN: Duration = Duration::from_millis(100);

/// Where nodes live.
pub struct House {
    pub stage: Arc<Stage>,
    pub sky: Sky,
    pub limits: Limits,
    pub entropy: Entropy,
    memory: RefCell<Memory>,
    /// One for each node, and one more where they are several: for a process that is started in the place of a node that stands
    /// still.
    pub places: Vec<Place>,
    /// What several nodes share; nothing for a node by itself.
    pub together: Option<Together>,
    /// Rung when a node is ready. No `watch`: it wakes those who wait in an order of its own.
    ready: Notify,
    /// A process has the place of another.
    pub replacing: Cell<bool>,
    /// Whom the next question goes to.
    dice: RefCell<Dice>,
}

/// What a house is made of.
pub struct Parts {
    pub stage: Arc<Stage>,
    pub sky: Sky,
    pub limits: Limits,
    pub entropy: Entropy,
    pub seats: Vec<Rc<RefCell<Seat>>>,
    pub together: Option<Together>,
    pub dice: Dice,
}

impl House {
    pub fn new(parts: Parts) -> Rc<House> {
        let Parts { stage, sky, limits, entropy, seats, together, mut dice } = parts;
        let several = together.is_some();
        let place = |(number, seat)| {
            // Up to 1 % too fast or too slow.
            let drift = if several { dice.below(21) as i32 - 10 } else { 0 };
            Place::new(number, seat, stage.time.of_machine(), drift)
        };
        let places = seats.into_iter().enumerate().map(place).collect();
        let (memory, ready, replacing) = (RefCell::new(Memory::new()), Notify::new(), Cell::new(false));
        let dice = RefCell::new(dice);
        Rc::new(House { stage, sky, limits, entropy, memory, places, together, ready, replacing, dice })
    }

    /// Whether there is a node that answers.
    pub fn is_up(&self) -> bool {
        self.places.iter().any(Place::is_up)
    }

    /// The handle that a node has of the store while it lives. Of a node by itself only the newest counts.
    pub fn memory(&self) -> Memory {
        let mut memory = self.memory.borrow_mut();
        match self.together {
            Some(_) => memory.join(),
            None => {
                *memory = memory.reopen();
                memory.clone()
            }
        }
    }

    /// Starts all nodes that are not there, over what the last ones have left.
    pub async fn start(self: &Rc<House>) {
        for number in 0..self.nodes() {
            self.start_at(number).await;
        }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        match self.together {
            Some(_) => self.places.len() - 1,
            None => 1,
        }
    }

    /// Starts a node, and again until it is ready. One that gives up later is started again, as a supervisor does with a
    /// process that has ended.
    pub async fn start_at(self: &Rc<House>, number: usize) {
        let place = &self.places[number];
        if !place.may_start() {
            return;
        }
        let gave_up = place.bring_up(self).await;
        let life = place.life();
        self.ready.notify_waiters();
        let house = self.clone();
        tokio::task::spawn_local(async move {
            // A node that is gone for another reason says nothing.
            if gave_up.await.is_ok() && house.places[number].life() == life {
                house.crash(number);
                tokio::time::sleep(AGAIN).await;
                Box::pin(house.start_at(number)).await;
            }
        });
    }

    /// A node is gone without a word; what it has written stays.
    pub fn crash(&self, number: usize) {
        self.places[number].crash(&self.stage);
    }

    /// A process that took the place of another is ended, once it is there.
    pub async fn retire(self: &Rc<House>, spare: usize) {
        let place = &self.places[spare];
        while !place.is_up() {
            self.ready.notified().await;
        }
        self.crash(spare);
        place.namesake.set(false);
    }

    /// A node finishes what it is at, and ends.
    pub async fn stop(&self, number: usize) {
        self.places[number].stop(&self.stage).await;
    }

    /// A node that stands still goes on.
    pub fn goes_on(&self, number: usize) {
        if self.places[number].stands() {
            self.pause(number, false);
        }
    }

    /// A node has no turns any more, or has them again.
    pub fn pause(&self, number: usize, paused: bool) {
        self.places[number].pause(&self.stage, paused);
    }
}
