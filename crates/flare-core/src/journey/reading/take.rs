//! Deliver, first half: a courier is free → the next attempt of a subscription of its host, if there is one.
//!
//! The slots come first (the courier is the host's slot; concurrency and rate are checked before anything is
//! taken), so a subscription that is blocked holds nothing.

use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::Attempt;
use flare_model::pace::Ask;

use crate::journey::reading::interest::Turn;
use crate::journey::subscriber::passive::drive::Drive;
use crate::journey::worker::Worker;
use crate::journey::worker::alarms::Alarm;
use crate::journey::worker::breaker::Permit;
use crate::journey::worker::job::Job;
use crate::journey::worker::queue::Queue;
use crate::journey::worker::subscribers::Place;
use crate::notification::Notification;
use crate::notification::change::Change;

/// While the node's lease is all but over, it is looked at again after so long: either it was renewed, or all is cut.
const NOT_OURS: Duration = Duration::from_millis(100);

impl Worker {
    /// The next attempt for a host, its subscriptions in turn.
    pub fn next_job(&mut self, host: usize) -> Option<Job> {
        if self.hosts[host].breaker.is_closed() {
            return self.hosts[host].handed.pop_front().or_else(|| self.next_of_queue(host, Queue::pop));
        }
        if !self.may_probe(host) {
            let job = self.next_of_queue(host, Queue::pop_trusted);
            if self.hosts[host].queue.has_trusted() {
                // One that hangs must not keep the others.
                self.summon(host);
            }
            return job;
        }
        // Whoever was answered last is the most likely to be answered again.
        let answered_last = self.hosts[host].answered_last;
        self.hosts[host].queue.trust(|place| Some(place) == answered_last);
        let job = self.hosts[host].handed.pop_front().or_else(|| self.next_of_queue(host, Queue::pop));
        job.map(|job| {
            self.hosts[host].breaker.probe();
            Job { probe: true, ..job }
        })
    }

    /// Whether a host that did not answer may be asked once more. What was handed over to it goes back meanwhile: no
    /// attempt is burnt while nobody is there.
    fn may_probe(&mut self, host: usize) -> bool {
        let now = self.tools.clock.monotonic();
        let until = match self.hosts[host].breaker.permit(now) {
            Permit::Free | Permit::Probe => {
                self.hosts[host].rests = false;
                return true;
            }
            Permit::Wait(until) => until,
        };
        while let Some(job) = self.hosts[host].handed.pop_front() {
            let wait = until.map_or(self.tools.limits.breaker.pause, |until| until.saturating_sub(now));
            self.withhold(job, wait);
        }
        match until {
            Some(until) if !self.hosts[host].queue.is_empty() => {
                self.alarms.set(until, Alarm::Host(host));
                self.rests(host);
            }
            Some(_) => {}
            None => self.rests(host),
        }
        false
    }

    fn rests(&mut self, host: usize) {
        if !std::mem::replace(&mut self.hosts[host].rests, true) {
            self.return_shares_of(host);
        }
    }

    fn next_of_queue(&mut self, host: usize, next: fn(&mut Queue) -> Option<Place>) -> Option<Job> {
        let mut turn = None;
        while let Some(place) = next(&mut self.hosts[host].queue) {
            let Some(subscriber) = self.subscribers.get_mut(place) else { continue };
            subscriber.queued = false;
            if turn.is_none() && subscriber.compiled.spec.has_expressions() {
                turn = Some(Turn::begin(&subscriber.compiled, &*self.tools.clock));
            }
            let Some((lane, attempt, change)) = self.take(place) else {
                self.took_nothing(place);
                self.drive_may_end(place);
                // Many subscriptions whose expressions find nothing must not keep the thread either.
                let over = turn.as_ref().and_then(|turn| turn.is_over(&*self.tools.clock));
                if let Some(at) = over {
                    self.alarms.set(at, Alarm::Host(host));
                    self.hosts[host].rests = true;
                    return None;
                }
                continue;
            };
            let job = self.begin(place, lane, attempt, change);
            self.ready(place);
            if job.host == host {
                if job.share.is_some() && self.hosts[host].queue.has_quick() {
                    // The courier that was called for it is under way with this one.
                    self.summon(host);
                }
                return Some(job);
            }
            let elsewhere = job.host;
            self.hosts[elsewhere].handed.push_back(job);
            self.summon(elsewhere);
        }
        None
    }

    /// An attempt begins.
    pub(in crate::journey) fn begin(
        &mut self,
        place: Place,
        lane: u8,
        attempt: Attempt,
        change: Arc<Change>,
    ) -> Job {
        let keeps = self.subscribers[place].compiled.spec.keeps_state();
        let state = if keeps { self.state_for(place, lane, &attempt) } else { None };
        let subscriber = &mut self.subscribers[place];
        subscriber.in_flight += 1;
        let slot = &mut subscriber.lanes[lane];
        slot.in_flight += 1;
        let epoch = slot.epoch;
        self.in_flight += 1;
        if subscriber.compiled.spec.rate_limit.is_some() {
            subscriber.rate_take(self.tools.clock.monotonic());
        }
        let driven = subscriber.drive().map(Drive::begins).is_some();
        let share = subscriber.share.take();
        let home = subscriber.host;
        let host = subscriber.hosts[attempt.action as usize];
        let span = change.trace().and(self.tools.tracer.as_ref()).map(|tracer| tracer.new_span());
        let compiled = subscriber.compiled.clone();
        if host != home {
            self.takes_its_share_along(home, host, share);
        }
        Job {
            place,
            lane,
            epoch,
            notification: Notification { attempt, change, state, compiled, span },
            host,
            offset: self.offset,
            share,
            age: None,
            probe: false,
            driven,
        }
    }

    fn take(&mut self, place: Place) -> Option<(u8, Attempt, Arc<Change>)> {
        let now = self.tools.clock.monotonic();
        if self.tools.tenancy.as_ref().is_some_and(|tenancy| !tenancy.holds(now, self.thread)) {
            self.wake_at(place, now + NOT_OURS);
            return None;
        }
        let subscriber = &mut self.subscribers[place];
        if self.stopping || subscriber.stands() {
            return None;
        }
        if subscriber.in_flight >= subscriber.room() {
            return None;
        }
        let [retries_at, firsts_at] = [Ask::Retry, Ask::First].map(|ask| subscriber.fortune.not_before(ask));
        if now < retries_at {
            self.wake_at(place, retries_at);
            return None;
        }
        // A client that struggles is asked when a retry is due, and rarely for what it was not tried with.
        let ask = if now < firsts_at { Ask::Retry } else { Ask::First };
        if ask == Ask::Retry && subscriber.next_due(ask).is_none() {
            self.wake_at(place, firsts_at);
            return None;
        }
        let wait = subscriber.rate_wait(now);
        if !wait.is_zero() {
            self.wake_at(place, now + wait);
            return None;
        }
        // What is shared comes last: it is not kept for somebody who cannot use it.
        if !self.may_begin(place) || !self.may_share(place) {
            return None;
        }
        let taken = match ask {
            Ask::First => self.take_due(place, ask).or_else(|| self.take_unread(place)),
            Ask::Retry => self.take_due(place, ask),
        };
        if ask == Ask::Retry && taken.is_none() {
            self.wake_at(place, firsts_at);
        }
        taken
    }
}
