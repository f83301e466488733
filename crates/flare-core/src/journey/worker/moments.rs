//! What time it is to a delivery thread: the wall clock as it was last told, moved on by the monotonic one. So the time
//! between two moments that it keeps is what passed, whatever is done to the clock of the machine; and when that was set,
//! all of them move at once.

use std::time::Duration;

use flare_model::time::Timestamp;

use crate::journey::worker::Worker;
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

impl Worker {
    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.moment(self.tools.clock.monotonic())
    }

    /// The time at a moment of the monotonic clock.
    pub fn moment(&self, monotonic: Duration) -> Timestamp {
        steps::at(self.offset, monotonic)
    }

    /// The wall clock is ahead of the monotonic one by so many milliseconds now. If it was set, every moment that is kept
    /// here moves with it, and what waits is recorded so: the next process knows no other clock.
    pub fn clock_moved(&mut self, offset: i64) {
        let by = offset.saturating_sub(self.offset);
        if by.unsigned_abs() < steps::LEAST.as_millis() as u64 {
            return;
        }
        self.offset = offset;
        self.alarms.clock_moved(by);
        let mut touched = Vec::new();
        for (place, subscriber) in self.subscribers.iter_mut() {
            subscriber.clock_moved(by);
            for slot in subscriber.lanes.iter_mut().filter(|slot| !slot.feed.waiting().is_empty()) {
                slot.feed.clock_moved(by);
                touched.push((place, slot.id.lane));
            }
        }
        for (place, lane) in touched {
            self.mark_dirty(place, lane, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journey::subscriber::Standstill;
    use crate::journey::testing::fixture::Thread;
    use crate::journey::worker::alarms::Alarm;
    use crate::journey::worker::subscribers::FeedPlace;
    use flare_model::feed::{Action, Saved, Standing, State, Trouble};
    use flare_model::ids::{Ordinal, Seq};
    use tokio::task::LocalSet;

    const HOUR: i64 = 3_600_000;

    /// A subscription whose document was first tried an hour ago, a minute ago for the last time, and is due in a minute.
    fn tried(thread: &Thread, standstill: Standstill) -> FeedPlace {
        let now = thread.worker.borrow().now();
        let trouble = Trouble {
            attempts: 2,
            first_attempt_at: now.moved(-HOUR),
            last_attempt_at: now.moved(-60_000),
            action: Action::Create,
            status: Some(503),
            error: None,
            response: None,
            unheard: false,
            has: None,
            lent: None,
        };
        let standing = Standing {
            ordinal: Ordinal(1),
            seq: Seq(1),
            doubt: false,
            state: State::Waiting { due: now.moved(60_000) },
            replay: 0,
            trouble: Some(Box::new(trouble)),
        };
        let saved = Saved { cursor: Seq(1), standings: vec![standing], ..Saved::default() };
        thread.open(1, saved, standstill)
    }

    /// How long ago the document was first tried, and in how long it is due, in whole minutes.
    fn times(worker: &Worker, entry: FeedPlace) -> (i64, i64) {
        let standing = &worker.subscribers[entry.place].lanes[0].feed.waiting()[&Ordinal(1)];
        let first = standing.trouble.as_ref().expect("it was tried").first_attempt_at;
        let minutes = |millis: i64| (millis + 30_000).div_euclid(60_000);
        let now = worker.now().millis();
        let due = standing.due().expect("it waits").millis();
        (minutes(now - first.millis()), minutes(due - now))
    }

    #[tokio::test]
    async fn what_waits_keeps_its_durations_and_its_alarm_when_the_clock_is_set() {
        let all = async {
            for hours in [100, -100] {
                let thread = Thread::new();
                let entry = tried(&thread, Standstill::None);
                let mut worker = thread.worker.borrow_mut();
                let (before, offset) = (times(&worker, entry), worker.offset + hours * HOUR);
                assert_eq!(before, (60, 1));
                worker.clock_moved(offset);
                assert_eq!(times(&worker, entry), before);
                let due = worker.subscribers[entry.place].lanes[0].feed.waiting()[&Ordinal(1)].due();
                let mut alarms = worker.alarms.iter();
                assert!(alarms.any(|alarm| matches!(alarm, Alarm::Retry(.., at) if Some(*at) == due)));
            }
        };
        LocalSet::new().run_until(all).await;
    }

    #[tokio::test]
    async fn a_pause_lasts_as_long_as_it_does_when_the_clock_is_set_meanwhile() {
        let all = async {
            for hours in [100, -100] {
                let thread = Thread::new();
                let entry = tried(&thread, Standstill::None);
                let mut worker = thread.worker.borrow_mut();
                let paused_at = worker.now();
                worker.stand(entry.place.number(), Standstill::Paused, None);
                let offset = worker.offset + hours * HOUR;
                worker.clock_moved(offset);
                worker.stand(entry.place.number(), Standstill::None, Some(paused_at));
                assert_eq!(times(&worker, entry).0, 60);
            }
        };
        LocalSet::new().run_until(all).await;
    }

    #[tokio::test]
    async fn a_pause_that_an_earlier_process_began_counts_from_then() {
        let all = async {
            let thread = Thread::new();
            let entry = tried(&thread, Standstill::Paused);
            let mut worker = thread.worker.borrow_mut();
            let paused_at = worker.now().moved(-HOUR / 2);
            let offset = worker.offset + 100 * HOUR;
            worker.clock_moved(offset);
            worker.stand(entry.place.number(), Standstill::None, Some(paused_at));
            assert_eq!(times(&worker, entry).0, 30);
        };
        LocalSet::new().run_until(all).await;
    }
}
