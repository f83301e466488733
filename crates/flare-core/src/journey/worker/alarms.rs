//! What a delivery thread is to do at a time, by the monotonic clock. In: an alarm and its time. Out: those whose time has
//! come, the earliest first, and when the next one is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::time::Duration;

use flare_model::ids::Ordinal;
use flare_model::time::Timestamp;
use tokio::sync::Notify;

use crate::journey::worker::subscribers::{FeedPlace, Place};

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// A retry is due, unless its time has been changed meanwhile.
    Retry(FeedPlace, Ordinal, Timestamp),
    /// A subscription may go on (its rate, its probe).
    Wake(Place),
    /// A host may be tried again.
    Host(usize),
    /// The first lease of a subscription is over.
    Leases(Place),
}

impl Alarm {
    /// The alarm of a retry names when that was due.
    fn moved(self, by: i64) -> Alarm {
        match self {
            Alarm::Retry(feed, ordinal, due) => Alarm::Retry(feed, ordinal, due.moved(by)),
            other => other,
        }
    }
}

/// All alarms of a thread.
#[derive(Default)]
pub struct Alarms {
    /// Bound: one per document that waits, one per host that is left alone, and two per subscription.
    heap: BinaryHeap<Reverse<(Duration, Alarm)>>,
    /// Rung when an alarm is set before all others.
    earlier: Rc<Notify>,
}

/// What the alarms say at a time.
pub enum Rings {
    /// This one's time has come; there may be more.
    Now(Alarm),
    /// The next one rings after this time.
    In(Duration),
    /// There is none.
    Never,
}

impl Alarms {
    /// Sets an alarm for a time.
    pub fn set(&mut self, at: Duration, alarm: Alarm) {
        let first = self.heap.peek().is_none_or(|Reverse((earliest, _))| at < *earliest);
        self.heap.push(Reverse((at, alarm)));
        if first {
            self.earlier.notify_one();
        }
    }

    /// Takes the first alarm whose time has come.
    pub fn ring(&mut self, now: Duration) -> Rings {
        match self.heap.peek() {
            None => Rings::Never,
            Some(Reverse((at, _))) if *at > now => Rings::In(*at - now),
            Some(_) => self.heap.pop().map_or(Rings::Never, |Reverse((_, alarm))| Rings::Now(alarm)),
        }
    }

    /// Rung when an alarm is set before all others: whoever waits for the first one waits for another.
    pub fn earlier(&self) -> Rc<Notify> {
        self.earlier.clone()
    }

    /// The wall clock was set, by so many milliseconds. The alarms ring when they would have.
    pub fn clock_moved(&mut self, by: i64) {
        let alarms = std::mem::take(&mut self.heap).into_iter();
        self.heap = alarms.map(|Reverse((at, alarm))| Reverse((at, alarm.moved(by)))).collect();
    }

    /// All of them, in no order.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Alarm> {
        self.heap.iter().map(|Reverse((_, alarm))| alarm)
    }
}
