//! What is unread: a lane with changes beyond the position of its feed comes in; the next one that is to be sent goes out.

use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::{Attempt, Met};
use flare_model::ids::Seq;
use flare_model::pace::WAITING_WHILE_STRUGGLING;

use crate::journey::log::tail::Next;
use crate::journey::reading::interest::{self, Turn};
use crate::journey::reading::states::Waiting;
use crate::journey::reading::sweeping;
use crate::journey::subscriber::lane::FeedLane;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;
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

/// What a reader finds beyond its position.
enum Unread {
    /// A change.
    Change(Arc<Change>),
    /// Something that is not to be read any more; there may be more.
    Passed,
    /// Nothing now.
    Nothing,
}

impl Worker {
    /// The next change beyond a feed's position, lanes in turn.
    pub(in crate::journey) fn take_unread(&mut self, place: Place) -> Option<(u8, Attempt, Arc<Change>)> {
        if self.subscribers[place].unread.is_empty() || !self.may_read(place) {
            return None;
        }
        while let Some(lane) = self.subscribers[place].unread.pop_front() {
            let Some(slot) = self.subscribers.lane_mut(place, lane) else { continue };
            if slot.aside.leaving.is_some() {
                slot.queued = false;
                continue;
            }
            let found = self.read(place, lane);
            let subscriber = &mut self.subscribers[place];
            match found {
                Found::Job(attempt, change) => {
                    // Most often there is no more, and another turn to find that out would be wasted.
                    let slot = &mut subscriber.lanes[lane];
                    let end = slot.aside.page.is_none() && slot.feed.position() >= slot.tail.head();
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
                    self.stand_in_queue(place);
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
        let turn = Turn::begin(&self.subscribers[place].compiled, &*self.tools.clock);
        for _ in 0..ROWS_PER_TURN {
            let change = match self.next_unread(place, lane) {
                Unread::Change(change) => change,
                Unread::Passed => continue,
                Unread::Nothing => return Found::Nothing,
            };
            if !self.may_be_sent(place, lane, change.row().seq) {
                return Found::Nothing;
            }
            let Some(met) = self.meet(place, lane, &change) else { return Found::Nothing };
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

    /// The next change beyond a feed's position. Without one, whatever will bring one is under way, or the feed sleeps.
    fn next_unread(&mut self, place: Place, lane: u8) -> Unread {
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return Unread::Nothing };
        if slot.aside.loading || slot.wants_record {
            return Unread::Nothing;
        }
        match slot.next() {
            None => Unread::Passed,
            Some(Next::Change(change)) => Unread::Change(change),
            Some(Next::Behind) => {
                self.load_page(place, lane);
                Unread::Nothing
            }
            Some(Next::End(head)) => {
                slot.feed.skip_to(head);
                slot.feed.reached_tail();
                self.mark_dirty(place, lane, false);
                sweeping::go_on(self, place);
                if self.park(place, lane) { Unread::Nothing } else { Unread::Passed }
            }
        }
    }

    /// Whether a change is within the durable mark. The mark is raised in time, so that most often nobody waits for it.
    fn may_be_sent(&mut self, place: Place, lane: u8, seq: Seq) -> bool {
        let block = self.tools.limits.issue_block;
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return false };
        if seq.0 + block / 2 <= slot.feed.issued().0 {
            return true;
        }
        slot.feed.want_issue(Seq(seq.0 + block));
        let may = slot.feed.may_issue(seq);
        if !may {
            self.mark_dirty(place, lane, true);
        }
        may
    }

    /// The feed meets a change. `None`: the state that its client has is being read first.
    fn meet(&mut self, place: Place, lane: u8, change: &Change) -> Option<Met> {
        let (limits, row) = (self.tools.limits, change.row());
        let mut state = None;
        if self.subscribers[place].compiled.spec.keeps_state() {
            state = self.state_before(place, lane, row, Waiting::Reader)?;
        }
        let subscriber = &mut self.subscribers[place];
        let slot = &mut subscriber.lanes[lane];
        let clock = &*self.tools.clock;
        let met = interest::read(&subscriber.compiled, &mut slot.feed, change, state, clock);
        if row.seq.0 - slot.feed.cursor().0 > limits.window {
            slot.feed.displace(limits.window, steps::at(self.offset, self.tools.clock.monotonic()));
        }
        self.mark_dirty(place, lane, false);
        Some(met)
    }
}

impl FeedLane {
    /// The next change beyond the feed's position, from its page if it has one, else from the tail. `None`: what was
    /// there is passed over, and there may be more.
    fn next(&mut self) -> Option<Next> {
        let (position, since) = (self.feed.position(), self.feed.since());
        let Some(page) = &self.aside.page else {
            return Some(match since {
                None => self.tail.next(position),
                Some(since) => self.tail.next_revision(position, since),
            });
        };
        let change = match page.next(position) {
            Ok(change) => change.clone(),
            Err(upto) => {
                self.feed.skip_to(upto);
                self.aside.page = None;
                return None;
            }
        };
        if since.is_some() {
            return Some(Next::Change(change));
        }
        let row = *change.row();
        match self.tail.still_newest(row.ordinal, row.seq, page.0.head) {
            Some(true) => Some(Next::Change(change)),
            Some(false) => {
                self.feed.skip_to(row.seq);
                None
            }
            None => {
                self.aside.page = None;
                Some(Next::Behind)
            }
        }
    }
}
