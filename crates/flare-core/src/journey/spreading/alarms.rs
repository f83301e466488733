//! The time of something has come: a retry is due, a subscription or a host may be tried again, a lease is over. In: the
//! clock. Out: whoever it is for stands in line.

use std::time::Duration;

use flare_model::feed::State;
use flare_model::ids::Ordinal;

use crate::journey::worker::Worker;
use crate::journey::worker::alarms::{Alarm, Rings};
use crate::journey::worker::subscribers::{FeedPlace, Place};

impl Worker {
    /// Sets the alarm of a document that waits. A due time too far away comes from a clock that jumped.
    pub fn schedule_retry(&mut self, place: Place, lane: u8, ordinal: Ordinal) {
        let monotonic = self.tools.clock.monotonic();
        let now = self.moment(monotonic);
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        let longest = subscriber.longest_wait(self.tools.limits.passive.maximum_lease);
        let slot = subscriber.lanes.get_mut(lane);
        let Some(standing) = slot.and_then(|slot| slot.feed.waiting().get(&ordinal)) else { return };
        let Some(due) = standing.due() else { return };
        let wait = due.since(now).min(longest);
        if wait.is_zero() {
            subscriber.due.push_back((lane, ordinal));
            self.ready(place);
        } else {
            self.alarms.set(monotonic + wait, Alarm::Retry(place.feed(lane), ordinal, due));
        }
    }

    /// Handles what is due and answers when the next alarm is.
    pub fn ring_alarms(&mut self) -> Option<Duration> {
        let now = self.tools.clock.monotonic();
        loop {
            match self.alarms.ring(now) {
                Rings::Now(alarm) => self.alarm_rang(alarm, now),
                Rings::In(wait) => return Some(wait),
                Rings::Never => return None,
            }
        }
    }

    fn alarm_rang(&mut self, alarm: Alarm, now: Duration) {
        match alarm {
            Alarm::Wake(place) => {
                if let Some(subscriber) = self.subscribers.get_mut(place) {
                    if subscriber.alarm <= now {
                        subscriber.alarm = Duration::MAX;
                    }
                    self.ready(place);
                }
            }
            // Perhaps another one by now, which finds nothing to do.
            Alarm::Host(host) if self.hosts.contains(host) => {
                self.hosts[host].rests = false;
                self.summon_if_needed(host);
            }
            Alarm::Host(_) => {}
            Alarm::Leases(place) => self.expire_leases(place),
            Alarm::Retry(FeedPlace { place, lane }, ordinal, due) => {
                let Some(subscriber) = self.subscribers.get_mut(place) else { return };
                let slot = subscriber.lanes.get_mut(lane);
                let standing = slot.and_then(|slot| slot.feed.waiting().get(&ordinal));
                if standing.is_some_and(|standing| standing.state == (State::Waiting { due })) {
                    subscriber.due.push_back((lane, ordinal));
                    self.ready(place);
                }
            }
        }
    }
}
