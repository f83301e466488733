//! How the store fares: every call takes its time, and in bad weather some fail, some are done without an answer, and when
//! it is full nothing is written. The schedule changes the weather.

use std::sync::{Arc, Weak};
use std::time::Duration;

use flare_promises::dice::Dice;
use flare_provider::ErrorKind;
use flare_provider::faulty::{Fault, Plan};
use parking_lot::Mutex;

use crate::cue::Moment;
use crate::stage::Stage;

/// How the store fares now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// A few milliseconds for each call.
    Fair,
    /// Some calls take seconds.
    Slow,
    /// Some calls fail, and some that are done are not answered.
    Failing,
    /// Nothing is written.
    Full,
}

/// The weather of a simulation. Clones have the same.
#[derive(Clone)]
pub struct Sky {
    weather: Arc<Mutex<(Weather, Dice)>>,
}

/// What changes something.
const WRITES: [&str; 8] = [
    "catalog.create",
    "catalog.replace",
    "catalog.delete",
    "documents.commit",
    "documents.remove_revisions",
    "documents.remove_tombstones",
    "ledger.open",
    "ledger.write",
];

impl Sky {
    pub fn new(dice: Dice) -> Sky {
        Sky { weather: Arc::new(Mutex::new((Weather::Fair, dice))) }
    }

    pub fn set(&self, weather: Weather) {
        self.weather.lock().0 = weather;
    }

    /// What a store meets under it.
    pub fn plan(&self, stage: Weak<Stage>) -> Plan {
        let sky = self.clone();
        Plan::drawn_by(move |operation| {
            let fault = sky.draw(operation);
            if let Some(stage) = stage.upgrade() {
                let mut inside = stage.lock();
                inside.note(|| format!("store: {operation} {fault:?}"));
                match operation {
                    "ledger.write" => inside.cue.comes(Moment::Records),
                    "documents.commit" => inside.cue.comes(Moment::Commits),
                    _ => {}
                }
            }
            fault
        })
    }

    fn draw(&self, operation: &'static str) -> Option<Fault> {
        let (weather, dice) = &mut *self.weather.lock();
        let roll = dice.below(100);
        let mut some = |most: u64| Duration::from_millis(dice.below(most));
        let (before, after) = (some(4), some(3));
        let kind = ErrorKind::Unavailable;
        match *weather {
            Weather::Full if WRITES.contains(&operation) => Some(Fault::Before(kind)),
            Weather::Failing if roll < 15 => Some(Fault::Before(kind)),
            Weather::Failing if roll < 30 => Some(Fault::Lost { before, after, kind }),
            Weather::Slow if roll < 20 => Some(Fault::Slow { before: some(3000), after }),
            Weather::Slow if roll < 40 => Some(Fault::Slow { before, after: some(3000) }),
            // Most are done at once: what takes no time finds others at the same moment.
            _ if roll < 50 => None,
            _ => Some(Fault::Slow { before, after }),
        }
    }
}
