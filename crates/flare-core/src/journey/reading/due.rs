//! What is due: a document that waits, or is to be decided again, comes in; the attempt for it goes out, once its newest
//! row is there.

use std::sync::Arc;

use flare_model::feed::Attempt;
use flare_model::ids::{Ordinal, Seq};
use flare_model::pace::Ask;

use crate::journey::log::pages::Fetched;
use crate::journey::reading::interest::{self, Turn};
use crate::journey::reading::revisions::Due;
use crate::journey::reading::states::Waiting;
use crate::journey::reading::sweeping;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;
use crate::notification::change::Change;

/// The newest row of a document that waits.
enum Newest {
    Change(Arc<Change>),
    /// Nothing is owed of it, or it is in flight.
    Nothing,
    /// It has to be read from the store.
    Unread,
}

impl Worker {
    /// A retry; or, unless only those may be asked for now, a document that changed while it was in flight or that a sweep
    /// has handed over.
    pub(in crate::journey) fn take_due(
        &mut self,
        place: Place,
        ask: Ask,
    ) -> Option<(u8, Attempt, Arc<Change>)> {
        let turn = Turn::begin(&self.subscribers[place].compiled, &*self.tools.clock);
        while let Some((lane, ordinal)) = self.pop_due(place, ask) {
            if let Some(at) = turn.is_over(&*self.tools.clock) {
                self.subscribers[place].due.push_front((lane, ordinal));
                self.wake_at(place, at);
                return None;
            }
            // Whoever serves a lane next finds again what is due of it.
            let slot = self.subscribers.lane(place, lane).filter(|slot| slot.aside.leaving.is_none());
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
            slot.aside.let_go(&ordinal);
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

    fn pop_due(&mut self, place: Place, ask: Ask) -> Option<(u8, Ordinal)> {
        let subscriber = &mut self.subscribers[place];
        subscriber.next_due(ask).and_then(|next| subscriber.due.remove(next))
    }

    /// The newest row of a document that waits, if it is in memory. What was read for it stays there until it is decided
    /// on: it may have to wait for a mark, or for the state that its client has.
    fn newest(&mut self, place: Place, lane: u8, ordinal: Ordinal) -> Newest {
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return Newest::Nothing };
        let wanted = slot.feed.waiting().contains_key(&ordinal) || slot.feed.is_to_be_decided_again(ordinal);
        if !wanted || slot.feed.is_open(ordinal) {
            slot.aside.let_go(&ordinal);
            return Newest::Nothing;
        }
        if let Some(change) = slot.tail.newest(ordinal) {
            return Newest::Change(change);
        }
        if let Some(Fetched { change, head, .. }) = slot.aside.fetched.get(&ordinal)
            && slot.tail.still_newest(ordinal, change.row().seq, *head) == Some(true)
        {
            return Newest::Change(change.clone());
        }
        slot.aside.let_go(&ordinal);
        Newest::Unread
    }
}
