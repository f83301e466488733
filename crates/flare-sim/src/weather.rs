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
use crate::together::tenures::Sender;
use crate::together::ways::{Direction, End, Ways};

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
    /// It is started anew: nothing is answered.
    Down,
}

/// The weather of a simulation. Clones have the same.
#[derive(Clone)]
pub struct Sky {
    weather: Arc<Mutex<(Weather, Dice)>>,
}

/// What changes something.
const WRITES: [&str; 10] = [
    "catalog.create",
    "catalog.replace",
    "catalog.delete",
    "catalog.forget_deletions",
    "documents.begin_sweeping",
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
    pub fn plan(&self, stage: Weak<Stage>, sender: Sender, ways: Option<Ways>) -> Plan {
        let sky = self.clone();
        Plan::drawn_by(move |operation| {
            let fault = sky.draw(operation, ways.as_ref());
            if let Some(stage) = stage.upgrade() {
                let mut inside = stage.lock();
                inside.note(|| match ways {
                    Some(_) => format!("store of node {}: {operation} {fault:?}", sender.node),
                    None => format!("store: {operation} {fault:?}"),
                });
                match operation {
                    "ledger.write" => inside.cue.comes(Moment::Records, sender.node),
                    "documents.commit" => inside.cue.comes(Moment::Commits, sender.node),
                    _ => {}
                }
            }
            fault
        })
    }

    /// What a call meets, on its way from a node of several or of a node by itself.
    fn draw(&self, operation: &'static str, ways: Option<&Ways>) -> Option<Fault> {
        let (weather, dice) = &mut *self.weather.lock();
        let roll = dice.below(100);
        let mut some = |most: u64| Duration::from_millis(dice.below(most));
        let (before, after) = (some(4), some(3));
        let kind = ErrorKind::Unavailable;
        let cut = |direction| ways.is_some_and(|ways| ways.is_cut(End::Store, direction));
        // What is answered over a network may be done where no answer comes.
        let lost = if ways.is_some() { ErrorKind::Unknown } else { kind.clone() };
        match *weather {
            _ if cut(Direction::Out) => Some(Fault::Before(kind)),
            _ if cut(Direction::Back) => Some(Fault::Lost { before, after: some(500), kind: lost }),
            Weather::Down => Some(Fault::Before(kind)),
            Weather::Full if WRITES.contains(&operation) => Some(Fault::Before(kind)),
            Weather::Failing if roll < 15 => Some(Fault::Before(kind)),
            Weather::Failing if roll < 30 => Some(Fault::Lost { before, after, kind: lost }),
            Weather::Slow if roll < 20 => Some(Fault::Slow { before: some(3000), after }),
            Weather::Slow if roll < 40 => Some(Fault::Slow { before, after: some(3000) }),
            // Most are done at once: what takes no time finds others at the same moment.
            _ if roll < 50 => None,
            _ => Some(Fault::Slow { before, after }),
        }
    }
}
