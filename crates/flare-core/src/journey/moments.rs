//! What time it is to a delivery thread: the wall clock as it was last told, moved on by the monotonic one. So the time
//! between two moments that it keeps is what passed, whatever is done to the clock of the machine; and when that was set,
//! all of them move at once.

use std::cmp::Reverse;
use std::time::Duration;

use flare_model::time::Timestamp;

use super::courier::Job;
use super::judge::Times;
use super::shard::{Alarm, Shard};
use crate::steps;

/// When an attempt was under way.
#[derive(Clone, Copy, Debug)]
pub struct Lasted {
    /// When it began, by the wall clock.
    pub began: Timestamp,
    /// The same by the monotonic clock.
    pub since: Duration,
    /// When it ended, by the monotonic clock.
    pub until: Duration,
}

impl Shard {
    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.moment(self.shared.clock.monotonic())
    }

    /// The time at a moment of the monotonic clock.
    pub fn moment(&self, monotonic: Duration) -> Timestamp {
        steps::at(self.offset, monotonic)
    }

    /// When an attempt began and ended, as this thread counts time.
    pub fn times(&self, Lasted { began, since, until }: Lasted) -> Times {
        Times {
            began: self.moment(since),
            ended: self.moment(until),
            by_the_wall: began.saturating_add(until.saturating_sub(since)),
        }
    }

    /// An attempt that was under way when the clock was set: the first one of its document moved too.
    pub fn keep_up(&self, job: &mut Job) {
        let by = self.offset.saturating_sub(job.offset);
        job.attempt.first_attempt_at = job.attempt.first_attempt_at.map(|at| at.moved(by));
        job.offset = self.offset;
    }

    /// The wall clock is ahead of the monotonic one by so many milliseconds now. If it was set, every moment that is kept
    /// here moves with it, and what waits is recorded so: the next process knows no other clock.
    pub fn clock_moved(&mut self, offset: i64) {
        let by = offset.saturating_sub(self.offset);
        if by.unsigned_abs() < steps::LEAST.as_millis() as u64 {
            return;
        }
        self.offset = offset;
        let alarms = std::mem::take(&mut self.alarms).into_iter();
        self.alarms = alarms.map(|Reverse((at, alarm))| Reverse((at, alarm.moved(by)))).collect();
        let mut touched = Vec::new();
        for (key, subscriber) in &mut self.subscribers {
            subscriber.clock_moved(by);
            for slot in subscriber.lanes.iter_mut().filter(|slot| !slot.feed.waiting().is_empty()) {
                slot.feed.clock_moved(by);
                touched.push((key, slot.id.lane));
            }
        }
        for (key, lane) in touched {
            self.mark_dirty(key, lane, false);
        }
    }
}

impl Alarm {
    /// The alarm of a retry names when that was due.
    fn moved(self, by: i64) -> Alarm {
        match self {
            Alarm::Retry(key, number, lane, ordinal, due) => {
                Alarm::Retry(key, number, lane, ordinal, due.moved(by))
            }
            other => other,
        }
    }
}
