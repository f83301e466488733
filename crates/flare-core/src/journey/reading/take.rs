//! Deliver, first half: a courier is free → the next attempt of a subscription of its host, if there is one.
//!
//! The slots come first (the courier is the host's slot; concurrency and rate are checked before anything is
//! taken), so a subscription that is blocked holds nothing.

use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::{Attempt, Met};
use flare_model::ids::{Ordinal, Seq};

use crate::journey::log::pages::Fetched;
use crate::journey::log::tail::Next;
use crate::journey::reading::history::Due;
use crate::journey::reading::interest::{self, Turn};
use crate::journey::reading::states::Waiting;
use crate::journey::reading::sweeping;
use crate::journey::subscriber::pace::WAITING_WHILE_STRUGGLING;
use crate::journey::subscriber::passive::drive::Drive;
use crate::journey::worker::Worker;
use crate::journey::worker::alarms::Alarm;
use crate::journey::worker::breaker::Permit;
use crate::journey::worker::job::Job;
use crate::journey::worker::subscribers::Place;
use crate::notification::Notification;
use crate::notification::change::Change;
use crate::steps;

/// After so many rows with nothing to send, the other subscriptions of the host have a turn.
const ROWS_PER_TURN: usize = 512;

enum Found {
    Job(Attempt, Arc<Change>),
    /// Nothing now; whatever it waits for will make the subscription ready again.
    Nothing,
    /// More rows to look at, in the next turn.
    LaterMore,
    /// More rows to look at, not before this time: its expressions have had the thread for long enough.
    NotBefore(Duration),
}

/// The newest row of a document that waits.
enum Newest {
    Change(Arc<Change>),
    /// Nothing is owed of it, or it is in flight.
    Nothing,
    /// It has to be read from the store.
    Unread,
}

impl Worker {
    /// The next attempt for a host, its subscriptions in turn.
    pub fn next_job(&mut self, host: usize) -> Option<Job> {
        let probe = !self.hosts[host].breaker.is_closed();
        if probe && !self.may_probe(host) {
            return None;
        }
        let job = self.hosts[host].handed.pop_front().or_else(|| self.next_of_ready(host));
        if probe && job.is_some() {
            self.hosts[host].breaker.probe();
        }
        job
    }

    /// Whether a host that did not answer may be asked once more. What was handed over to it goes back meanwhile: no
    /// attempt is burnt while nobody is there.
    fn may_probe(&mut self, host: usize) -> bool {
        let now = self.tools.clock.monotonic();
        let until = match self.hosts[host].breaker.permit(now) {
            Permit::Free | Permit::Probe => return true,
            Permit::Wait(until) => until,
        };
        while let Some(job) = self.hosts[host].handed.pop_front() {
            let wait = until.map_or(self.tools.limits.breaker.pause, |until| until.saturating_sub(now));
            self.withhold(job, wait);
        }
        if let Some(until) = until
            && !self.hosts[host].ready.is_empty()
        {
            self.alarms.set(until, Alarm::Host(host));
        }
        false
    }

    fn next_of_ready(&mut self, host: usize) -> Option<Job> {
        let mut turn = None;
        while let Some(place) = self.hosts[host].ready.pop_front() {
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
                    return None;
                }
                continue;
            };
            let job = self.begin(place, lane, attempt, change);
            self.ready(place);
            if job.host == host {
                return Some(job);
            }
            let elsewhere = job.host;
            self.hosts[elsewhere].handed.push_back(job);
            self.summon(elsewhere);
        }
        None
    }

    fn begin(&mut self, place: Place, lane: u8, attempt: Attempt, change: Arc<Change>) -> Job {
        let keeps = self.subscribers[place].compiled.spec.keeps_state();
        let state = if keeps { self.state_for(place, lane, &attempt) } else { None };
        let subscriber = &mut self.subscribers[place];
        subscriber.in_flight += 1;
        subscriber.lanes[lane].in_flight += 1;
        self.in_flight += 1;
        if subscriber.compiled.spec.rate_limit.is_some() {
            subscriber.rate_take(self.tools.clock.monotonic());
        }
        let driven = subscriber.drive().map(Drive::begins).is_some();
        let hanging = subscriber.fortune.hangs;
        let span = change.trace().and(self.tools.tracer.as_ref()).map(|tracer| tracer.new_span());
        let compiled = subscriber.compiled.clone();
        Job {
            place,
            lane,
            notification: Notification { attempt, change, state, compiled, span },
            host: subscriber.hosts[attempt.action as usize],
            offset: self.offset,
            hanging,
            driven,
        }
    }

    fn take(&mut self, place: Place) -> Option<(u8, Attempt, Arc<Change>)> {
        let now = self.tools.clock.monotonic();
        let subscriber = &mut self.subscribers[place];
        if self.stopping || subscriber.stands() {
            return None;
        }
        if subscriber.in_flight >= subscriber.room() {
            return None;
        }
        let probe_at =
            if subscriber.fortune.struggling() { subscriber.fortune.probe_at } else { Duration::ZERO };
        let at = probe_at.max(subscriber.fortune.rest_until);
        if now < at {
            self.wake_at(place, at);
            return None;
        }
        let wait = subscriber.rate_wait(now);
        if !wait.is_zero() {
            self.wake_at(place, now + wait);
            return None;
        }
        // What is shared comes last: it is not kept for somebody who cannot use it.
        let hangs = subscriber.fortune.hangs;
        if !self.may_begin(place) || hangs && !self.may_hang(place) {
            return None;
        }
        let taken = self.take_due(place).or_else(|| self.take_unread(place));
        if hangs && taken.is_none() {
            self.hangs_no_more();
        }
        taken
    }

    /// A retry, or a document that changed while it was in flight.
    pub(in crate::journey) fn take_due(&mut self, place: Place) -> Option<(u8, Attempt, Arc<Change>)> {
        let turn = Turn::begin(&self.subscribers[place].compiled, &*self.tools.clock);
        while let Some((lane, ordinal)) = self.subscribers[place].due.pop_front() {
            if let Some(at) = turn.is_over(&*self.tools.clock) {
                self.subscribers[place].due.push_front((lane, ordinal));
                self.wake_at(place, at);
                return None;
            }
            // Whoever serves a lane next finds again what is due of it.
            let slot = self.subscribers.lane(place, lane).filter(|slot| slot.leaving.is_none());
            let Some(slot) = slot else { continue };
            if slot.feed.is_in_turn() {
                match self.take_revision(place, lane, ordinal) {
                    Due::Job(attempt, change) => return Some((lane, attempt, change)),
                    Due::Nothing => continue,
                    Due::Marks => {
                        self.subscribers[place].due.push_front((lane, ordinal));
                        self.mark_dirty(place, lane, true);
                        return None;
                    }
                    Due::Later => {
                        self.subscribers[place].due.push_front((lane, ordinal));
                        return None;
                    }
                }
            }
            let change = match self.newest(place, lane, ordinal) {
                Newest::Change(change) => change,
                Newest::Nothing => continue,
                Newest::Unread if self.subscribers[place].may_fetch() => {
                    self.fetch(place, lane, ordinal);
                    continue;
                }
                // As many are being read as may be. Each of them, when it is there, has this looked at again.
                Newest::Unread => {
                    self.subscribers[place].due.push_front((lane, ordinal));
                    return None;
                }
            };
            let block = self.tools.limits.issue_block;
            let subscriber = &mut self.subscribers[place];
            let slot = &mut subscriber.lanes[lane];
            let row = change.row();
            if !slot.feed.may_issue(row.seq) {
                slot.feed.want_issue(Seq(row.seq.0 + block));
                subscriber.due.push_front((lane, ordinal));
                self.mark_dirty(place, lane, true);
                return None;
            }
            let mut state = None;
            if subscriber.compiled.spec.keeps_state() {
                let Some(known) = self.state_before(place, lane, row, Waiting::Retry) else { continue };
                state = known;
            }
            let subscriber = &mut self.subscribers[place];
            let slot = &mut subscriber.lanes[lane];
            let clock = &*self.tools.clock;
            let attempt = interest::retry(&subscriber.compiled, &mut slot.feed, &change, state, clock);
            slot.fetched.remove(&ordinal);
            let outdated = attempt.is_none() && slot.feed.may_be_retried(ordinal);
            self.mark_dirty(place, lane, false);
            match attempt {
                Some(attempt) => return Some((lane, attempt, change)),
                // A later change of it was passed over in the tail, because its tombstone is about to go: nobody
                // knows here what there is now.
                None if outdated => self.fetch(place, lane, ordinal),
                None => sweeping::go_on(self, place),
            }
        }
        None
    }

    /// The newest row of a document that waits, if it is in memory. What was read for it stays there until it is decided
    /// on: it may have to wait for a mark, or for the state that its client has.
    fn newest(&mut self, place: Place, lane: u8, ordinal: Ordinal) -> Newest {
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return Newest::Nothing };
        let wanted = slot.feed.waiting().contains_key(&ordinal) || slot.feed.is_to_be_decided_again(ordinal);
        if !wanted || slot.feed.is_open(ordinal) {
            slot.fetched.remove(&ordinal);
            return Newest::Nothing;
        }
        if let Some(change) = slot.tail.newest(ordinal) {
            return Newest::Change(change);
        }
        if let Some(Fetched { change, head, .. }) = slot.fetched.get(&ordinal)
            && slot.tail.still_newest(ordinal, change.row().seq, *head) == Some(true)
        {
            return Newest::Change(change.clone());
        }
        slot.fetched.remove(&ordinal);
        Newest::Unread
    }

    /// The next change beyond a feed's position, lanes in turn.
    pub(in crate::journey) fn take_unread(&mut self, place: Place) -> Option<(u8, Attempt, Arc<Change>)> {
        if self.subscribers[place].unread.is_empty() || !self.may_read(place) {
            return None;
        }
        while let Some(lane) = self.subscribers[place].unread.pop_front() {
            let Some(slot) = self.subscribers.lane_mut(place, lane) else { continue };
            if slot.leaving.is_some() {
                slot.queued = false;
                continue;
            }
            let found = self.read(place, lane);
            let subscriber = &mut self.subscribers[place];
            match found {
                Found::Job(attempt, change) => {
                    // Most often there is no more, and another turn to find that out would be wasted.
                    let slot = &mut subscriber.lanes[lane];
                    let end = slot.page.is_none() && slot.feed.position() >= slot.tail.head();
                    if end {
                        slot.feed.reached_tail();
                    }
                    if end
                        && self.park(place, lane)
                        && let Some(slot) = self.subscribers.lane_mut(place, lane)
                    {
                        slot.queued = false;
                    } else {
                        self.subscribers[place].unread.push_back(lane);
                    }
                    return Some((lane, attempt, change));
                }
                Found::Nothing => subscriber.lanes[lane].queued = false,
                Found::NotBefore(at) => {
                    subscriber.unread.push_back(lane);
                    self.wake_at(place, at);
                    return None;
                }
                Found::LaterMore if subscriber.passive.is_some() => {
                    subscriber.unread.push_back(lane);
                    self.wake_at(place, self.tools.clock.monotonic());
                    return None;
                }
                Found::LaterMore => {
                    subscriber.unread.push_back(lane);
                    let host = subscriber.host;
                    subscriber.queued = true;
                    self.hosts[host].ready.push_back(place);
                    self.summon(host);
                    return None;
                }
            }
        }
        None
    }

    /// Whether there is room for what may fail: everything read now may end up waiting.
    pub(in crate::journey) fn may_read(&self, place: Place) -> bool {
        let limit = self.tools.limits.waiting_limit;
        let subscriber = &self.subscribers[place];
        let waiting = subscriber.waiting();
        let struggling = subscriber.fortune.struggling() && subscriber.passive.is_none();
        let limit = if struggling { WAITING_WHILE_STRUGGLING.min(limit) } else { limit };
        // What is on a lease waits, so that of a passive one everything counts.
        let first = waiting == 0 && subscriber.passive.is_none();
        first || waiting + (subscriber.in_flight as usize) < limit
    }

    /// Reads a lane until there is something to send.
    fn read(&mut self, place: Place, lane: u8) -> Found {
        let limits = self.tools.limits;
        let turn = Turn::begin(&self.subscribers[place].compiled, &*self.tools.clock);
        for _ in 0..ROWS_PER_TURN {
            let subscriber = &mut self.subscribers[place];
            let slot = &mut subscriber.lanes[lane];
            if slot.loading || slot.wants_record {
                return Found::Nothing;
            }
            let position = slot.feed.position();
            let since = slot.feed.since();
            let next = match &slot.page {
                None => match since {
                    None => slot.tail.next(position),
                    Some(since) => slot.tail.next_revision(position, since),
                },
                Some(page) => match page.next(position) {
                    Err(upto) => {
                        slot.feed.skip_to(upto);
                        slot.page = None;
                        continue;
                    }
                    Ok(change) if since.is_some() => Next::Change(change.clone()),
                    Ok(change) => {
                        let row = *change.row();
                        match slot.tail.still_newest(row.ordinal, row.seq, page.0.head) {
                            Some(true) => Next::Change(change.clone()),
                            Some(false) => {
                                slot.feed.skip_to(row.seq);
                                continue;
                            }
                            None => {
                                slot.page = None;
                                Next::Behind
                            }
                        }
                    }
                },
            };
            let change = match next {
                Next::Change(change) => change,
                Next::Behind => {
                    self.load_page(place, lane);
                    return Found::Nothing;
                }
                Next::End(head) => {
                    slot.feed.skip_to(head);
                    slot.feed.reached_tail();
                    self.mark_dirty(place, lane, false);
                    sweeping::go_on(self, place);
                    if self.park(place, lane) {
                        return Found::Nothing;
                    }
                    continue;
                }
            };
            let row = change.row();
            if row.seq.0 + limits.issue_block / 2 > slot.feed.issued().0 {
                slot.feed.want_issue(Seq(row.seq.0 + limits.issue_block));
                if !slot.feed.may_issue(row.seq) {
                    self.mark_dirty(place, lane, true);
                    return Found::Nothing;
                }
            }
            let mut state = None;
            if self.subscribers[place].compiled.spec.keeps_state() {
                match self.state_before(place, lane, row, Waiting::Reader) {
                    Some(known) => state = known,
                    None => return Found::Nothing,
                }
            }
            let subscriber = &mut self.subscribers[place];
            let slot = &mut subscriber.lanes[lane];
            let clock = &*self.tools.clock;
            let met = interest::read(&subscriber.compiled, &mut slot.feed, &change, state, clock);
            if row.seq.0 - slot.feed.cursor().0 > limits.window {
                slot.feed.displace(limits.window, steps::at(self.offset, self.tools.clock.monotonic()));
            }
            self.mark_dirty(place, lane, false);
            match met {
                Met::Send(attempt) => return Found::Job(attempt, change),
                Met::Owed => self.owe_next(place, lane, change.row().ordinal),
                Met::Settled | Met::Busy => {}
            }
            if let Some(at) = turn.is_over(&*self.tools.clock) {
                return Found::NotBefore(at);
            }
        }
        Found::LaterMore
    }
}
