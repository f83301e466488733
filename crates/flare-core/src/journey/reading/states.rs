//! Kept states on a delivery thread: which document is about to be decided comes in; the document as its client last
//! got it goes out, at once where it is in memory, and otherwise when the ledger has been read.
//!
//! Only subscriptions that keep states come here; see `flare_model::feed` for which state is believed and why.

use std::sync::Arc;

use flare_model::document::{Document, Row};
use flare_model::feed::{Attempt, Kept, Verdict};
use flare_model::ids::Ordinal;

use crate::journey::reading::insist::insist;
use crate::journey::worker::Worker;
use crate::journey::worker::states::Known;
use crate::journey::worker::subscribers::Place;

/// Bytes of a lane's states that may wait for their record. When full: the lane's reader waits for it too.
const UNRECORDED: usize = 1 << 20;

/// Who waits for a state.
#[derive(Clone, Copy)]
pub enum Waiting {
    /// The reader of the lane, which stands still meanwhile.
    Reader,
    /// A document that is owed; it is due again afterwards.
    Retry,
}

impl Worker {
    /// The document as the client last got it, before anything is decided about this row. `None`: it is being read,
    /// and whoever waits is called when it is there.
    pub fn state_before(&mut self, place: Place, lane: u8, row: &Row, waiting: Waiting) -> Option<Known> {
        let slot = self.subscribers.lane(place, lane)?;
        let feed = &slot.feed;
        let has = feed.held().contains(row.ordinal.0) && !feed.doubt().contains(row.ordinal.0);
        // What is in flight is decided again when it has ended.
        if !has || row.deleted || feed.is_open(row.ordinal) {
            return Some(None);
        }
        let known = self.known_state(place, lane, row.ordinal);
        if known.is_none() {
            self.read_state(place, lane, row.ordinal, waiting);
        }
        known
    }

    /// What an attempt may be told as a difference to. [`Worker::state_before`] was asked just before, so it is in
    /// memory.
    pub fn state_for(&mut self, place: Place, lane: u8, attempt: &Attempt) -> Known {
        if !attempt.builds_on_state() {
            return None;
        }
        self.known_state(place, lane, attempt.ordinal).flatten()
    }

    /// How an attempt ended, for a subscription that keeps states. Goes into the record that tells the rest.
    pub fn keep_state(
        &mut self,
        place: Place,
        lane: u8,
        attempt: &Attempt,
        document: &Document,
        verdict: &Verdict,
    ) {
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return };
        let small = self.states.keeps(document.content.len());
        let sent = || Kept { revision: document.revision.clone(), content: document.content.clone() };
        let Some(state) = slot.feed.keep_as(attempt, verdict, || small.then(|| Arc::new(sent()))) else {
            return;
        };
        let state_key = (slot.id, slot.feed.life(), attempt.ordinal);
        let full = slot.feed.keeping_bytes() > UNRECORDED;
        self.states.overtake(state_key, state);
        if full {
            self.mark_dirty(place, lane, true);
        }
    }

    /// From now on it is not known what the client has: a lease is out.
    pub fn forget_state(&mut self, place: Place, lane: u8, ordinal: Ordinal) {
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return };
        slot.feed.forget_state(ordinal);
        let state_key = (slot.id, slot.feed.life(), ordinal);
        self.states.overtake(state_key, None);
    }

    fn known_state(&mut self, place: Place, lane: u8, ordinal: Ordinal) -> Option<Known> {
        let slot = self.subscribers.lane(place, lane)?;
        slot.feed.keeping(ordinal).or_else(|| self.states.get(&(slot.id, slot.feed.life(), ordinal)))
    }

    fn read_state(&mut self, place: Place, lane: u8, ordinal: Ordinal, waiting: Waiting) {
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return };
        let (feed, life, era) = (slot.id, slot.feed.life(), slot.era);
        if let Waiting::Reader = waiting {
            slot.aside.loading = true;
        }
        let reading = self.states.begin_read((feed, life, ordinal));
        let (worker, tools) = (self.handle(), self.tools.clone());
        self.tasks.spawn_local(async move {
            let read = || tools.ledger.state(feed, life, ordinal);
            let Some(found) = insist(&tools, read).await else { return };
            let mut worker = worker.borrow_mut();
            worker.states.end_read((feed, life, ordinal), reading, found.map(Arc::new));
            match waiting {
                Waiting::Reader => {
                    let Some(slot) = worker.slot_of_era(place.feed(lane), era) else { return };
                    slot.aside.loading = false;
                    worker.subscribers[place].mark_unread(lane);
                    worker.ready(place);
                }
                // What is due of a lane that is gone by now is found again where it went.
                Waiting::Retry => worker.due_again(place, lane, ordinal),
            }
        });
    }
}
