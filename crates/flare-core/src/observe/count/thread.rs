//! What one delivery thread counts: attempts and how they ended, what followed, records, leases.

use std::time::Duration;

use flare_model::feed::Verdict;

use super::histogram::TIMES;
use super::{Count, Histogram};
use crate::notification::ending::Ending;
use crate::observe::Outcome;

/// How attempts end, in the order of the columns of [`Thread::attempts`].
pub const ENDINGS: [&str; 7] = ["1xx", "2xx", "3xx", "4xx", "5xx", "timeout", "error"];

/// How leases end, in the order of [`Thread::leases`].
pub const LEASES: [&str; 6] = ["success", "discard", "release", "expired", "ended", "missed"];

/// The numbers of one delivery thread, which alone writes them. Aligned so that no other thread's memory is in the same
/// cache line, nor in the one that processors fetch beside it.
#[derive(Debug)]
#[repr(align(128))]
pub struct Thread {
    /// By what they meant and how they ended.
    pub attempts: [[Count; ENDINGS.len()]; Outcome::NAMES.len()],
    /// How long attempts took, in microseconds.
    pub attempt: Histogram,
    /// Bytes of bodies that were given to connections of clients.
    pub sent: Count,
    /// From when a change was accepted until the client had it, in microseconds.
    pub latency: Histogram,
    /// Attempts after which another one follows.
    pub retries: Count,
    /// Notifications that were given up.
    pub given_up: Count,
    /// How often a host was left alone because it did not answer.
    pub breakers: Count,
    /// Feeds whose state was written.
    pub records: Count,
    /// How long writing them took, in microseconds, each time.
    pub record: Histogram,
    /// Notifications handed out to clients that pull.
    pub leased: Count,
    /// How that ended.
    pub leases: [Count; LEASES.len()],
}

impl Thread {
    pub(super) fn new() -> Thread {
        Thread {
            attempts: Default::default(),
            attempt: Histogram::new(&TIMES),
            sent: Count::default(),
            latency: Histogram::new(&TIMES),
            retries: Count::default(),
            given_up: Count::default(),
            breakers: Count::default(),
            records: Count::default(),
            record: Histogram::new(&TIMES),
            leased: Count::default(),
            leases: Default::default(),
        }
    }

    /// An attempt has ended.
    pub fn attempted(&self, outcome: Outcome, ending: &Ending, took: Duration) {
        let column = match ending {
            Ending::Answered(answer) => (usize::from(answer.status) / 100).clamp(1, 5) - 1,
            // As their like over HTTP: it has it, and it is the notification that is wrong.
            Ending::Taken => 1,
            Ending::Refused(_) => 3,
            Ending::Failed { timed_out: true, .. } => 5,
            Ending::Failed { .. } => 6,
        };
        self.attempts[outcome as usize][column].add(1);
        self.attempt.record(micros(took));
    }

    /// What follows from an attempt or the end of a lease; `late` is how long after its acceptance the change arrived,
    /// where that means something.
    pub fn judged(&self, verdict: &Verdict, late: Option<Duration>) {
        match verdict {
            Verdict::Delivered => {
                if let Some(late) = late {
                    self.latency.record(micros(late));
                }
            }
            Verdict::Discarded { .. } => {}
            Verdict::Retry { .. } => self.retries.add(1),
            Verdict::GiveUp { .. } => self.given_up.add(1),
        }
    }

    /// So many feeds were written, and it took so long.
    pub fn recorded(&self, feeds: usize, took: Duration) {
        self.records.add(feeds as u64);
        self.record.record(micros(took));
    }
}

/// A time as it is counted.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
