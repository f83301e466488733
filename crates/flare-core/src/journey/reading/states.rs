//! Kept states on a delivery thread: which document is about to be decided comes in; the document as its client last
//! got it goes out, at once where it is in memory, and otherwise when the ledger has been read.
//!
//! Only subscriptions that keep states come here; see `flare_model::feed` for which state is believed and why.

use std::collections::HashMap;
use std::sync::Arc;

use flare_model::document::{Document, Row};
use flare_model::feed::{Attempt, Kept, Verdict};
use flare_model::ids::{FeedId, Ordinal};

use crate::journey::reading::insist::insist;
use crate::journey::worker::Worker;

/// Bytes of a lane's states that may wait for their record. When full: the lane's reader waits for it too.
const UNRECORDED: usize = 1 << 20;

/// A state: the feed, its life, the document. A life that ended is never asked for again.
type StateKey = (FeedId, u64, Ordinal);

/// What is known of a document's state; `None` inside: that there is none.
pub type Known = Option<Arc<Kept>>;

/// The states that were used last, in two generations: when the young one has half of the bytes, it becomes the old
/// one, and what was not asked for meanwhile goes. Writes go through it, so that it is never behind the ledger.
///
/// Bound: `budget` bytes, and one state however large. When full: the ledger is read again.
pub struct States {
    young: HashMap<StateKey, Known>,
    old: HashMap<StateKey, Known>,
    bytes: usize,
    budget: usize,
    /// A document that is larger is not kept: its client is sent the whole each time.
    largest: usize,
    /// Reads under way that are not overtaken, each with its number; those of one state that overlap share it. Bound:
    /// one for each lane and each retry of the subscriptions that keep states.
    reading: HashMap<StateKey, u64>,
    /// The number of the last read. Without it a read that was overtaken would be taken for one that began after that.
    reads: u64,
}

/// Who waits for a state.
#[derive(Clone, Copy)]
pub enum Waiting {
    /// The reader of the lane, which stands still meanwhile.
    Reader,
    /// A document that is owed; it is due again afterwards.
    Retry,
}

impl States {
    /// With so many bytes, for documents up to this size.
    pub fn new(budget: usize, largest: usize) -> States {
        let (young, old, reading) = Default::default();
        States { young, old, bytes: 0, budget, largest, reading, reads: 0 }
    }

    /// Nothing is known of some feeds any more: another thread may have changed them.
    pub fn forget(&mut self, feeds: &[FeedId]) {
        let others = |(feed, _, _): &StateKey| !feeds.contains(feed);
        self.reading.retain(|key, _| others(key));
        self.young.retain(|key, _| others(key));
        self.old.retain(|key, _| others(key));
    }

    fn get(&mut self, key: &StateKey) -> Option<Known> {
        if let Some(known) = self.young.get(key) {
            return Some(known.clone());
        }
        let known = self.old.remove(key)?;
        self.put(*key, known.clone());
        Some(known)
    }

    /// A state is about to be read from the ledger. Answers the number of the read.
    fn begin_read(&mut self, key: StateKey) -> u64 {
        self.reads += 1;
        *self.reading.entry(key).or_insert(self.reads)
    }

    /// A state was read, and is kept unless the document was delivered meanwhile: then it is not the newest.
    fn end_read(&mut self, key: StateKey, read: u64, found: Known) {
        if self.reading.get(&key) == Some(&read) {
            self.reading.remove(&key);
            self.put(key, found);
        }
    }

    /// What the client has is known from now on. What is being read is older than this.
    fn overtake(&mut self, key: StateKey, known: Known) {
        self.reading.remove(&key);
        self.put(key, known);
    }

    fn put(&mut self, key: StateKey, known: Known) {
        let weight = 128 + known.as_ref().map_or(0, |state| state.content.len());
        if self.bytes + weight > self.budget / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.old.remove(&key);
        self.bytes += weight;
        self.young.insert(key, known);
    }
}

impl Worker {
    /// The document as the client last got it, before anything is decided about this row. `None`: it is being read,
    /// and whoever waits is called when it is there.
    pub fn state_before(&mut self, key: usize, lane: u8, row: &Row, waiting: Waiting) -> Option<Known> {
        let slot = &self.subscribers[key].lanes[usize::from(lane)];
        let feed = &slot.feed;
        let has = feed.held().contains(row.ordinal.0) && !feed.doubt().contains(row.ordinal.0);
        // What is in flight is decided again when it has ended.
        if !has || row.deleted || feed.is_open(row.ordinal) {
            return Some(None);
        }
        let known = self.known_state(key, lane, row.ordinal);
        if known.is_none() {
            self.read_state(key, lane, row.ordinal, waiting);
        }
        known
    }

    /// What an attempt may be told as a difference to. [`Worker::state_before`] was asked just before, so it is in
    /// memory.
    pub fn state_for(&mut self, key: usize, lane: u8, attempt: &Attempt) -> Known {
        if !attempt.builds_on_state() {
            return None;
        }
        self.known_state(key, lane, attempt.ordinal).flatten()
    }

    /// How an attempt ended, for a subscription that keeps states. Goes into the record that tells the rest.
    pub fn keep_state(
        &mut self,
        key: usize,
        lane: u8,
        attempt: &Attempt,
        document: &Document,
        verdict: &Verdict,
    ) {
        let slot = &mut self.subscribers[key].lanes[usize::from(lane)];
        let small = document.content.len() <= self.states.largest;
        let sent = || Kept { revision: document.revision.clone(), content: document.content.clone() };
        let Some(state) = slot.feed.keep_as(attempt, verdict, || small.then(|| Arc::new(sent()))) else {
            return;
        };
        let state_key = (slot.id, slot.feed.life(), attempt.ordinal);
        let full = slot.feed.keeping_bytes() > UNRECORDED;
        self.states.overtake(state_key, state);
        if full {
            self.mark_dirty(key, lane, true);
        }
    }

    /// From now on it is not known what the client has: a lease is out.
    pub fn forget_state(&mut self, key: usize, lane: u8, ordinal: Ordinal) {
        let slot = &mut self.subscribers[key].lanes[usize::from(lane)];
        slot.feed.forget_state(ordinal);
        let state_key = (slot.id, slot.feed.life(), ordinal);
        self.states.overtake(state_key, None);
    }

    fn known_state(&mut self, key: usize, lane: u8, ordinal: Ordinal) -> Option<Known> {
        let slot = &self.subscribers[key].lanes[usize::from(lane)];
        slot.feed.keeping(ordinal).or_else(|| self.states.get(&(slot.id, slot.feed.life(), ordinal)))
    }

    fn read_state(&mut self, key: usize, lane: u8, ordinal: Ordinal, waiting: Waiting) {
        let subscriber = &mut self.subscribers[key];
        let number = subscriber.compiled.number;
        let slot = &mut subscriber.lanes[usize::from(lane)];
        let (feed, life, era) = (slot.id, slot.feed.life(), slot.era);
        if let Waiting::Reader = waiting {
            slot.loading = true;
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
                    let Some(slot) = worker.slot_of_era((key, number, lane), era) else { return };
                    slot.loading = false;
                    worker.subscribers[key].mark_unread(lane);
                    worker.ready(key);
                }
                // What is due of a lane that is gone by now is found again where it went.
                Waiting::Retry => worker.due_again(key, number, lane, ordinal),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use flare_model::ids::SubscriptionNumber;
    use flare_model::revision::Revision;

    fn key(ordinal: u64) -> StateKey {
        (FeedId { subscription: SubscriptionNumber(1), lane: 0 }, 1, Ordinal(ordinal))
    }

    fn state(size: usize) -> Known {
        Some(Arc::new(Kept { revision: Revision::Integer(1), content: Bytes::from(vec![0; size]) }))
    }

    #[test]
    fn what_was_used_last_stays_within_the_bytes() {
        let mut states = States::new(20_000, usize::MAX);
        for ordinal in 0..100 {
            states.put(key(ordinal), state(1000));
            assert!(states.get(&key(0)).is_some(), "what is asked for stays");
        }
        assert!(states.get(&key(99)).is_some() && states.get(&key(50)).is_none());
        assert!(states.young.len() + states.old.len() <= 18, "{}", states.young.len() + states.old.len());
        states.put(key(0), None);
        assert_eq!(states.get(&key(0)), Some(None), "that there is none is known too");
        states.put(key(7), state(50_000));
        assert!(states.get(&key(7)).is_some(), "one is kept however large");
        states.begin_read(key(8));
        states.forget(&[FeedId { lane: 9, ..key(7).0 }]);
        assert!(states.get(&key(7)).is_some() && states.reading.contains_key(&key(8)));
        states.forget(&[key(7).0]);
        assert!(states.get(&key(7)).is_none() && states.reading.is_empty());
    }

    #[test]
    fn a_read_that_was_overtaken_tells_nothing_even_while_a_later_one_is_under_way() {
        let mut states = States::new(1, usize::MAX);
        let early = states.begin_read(key(1));
        states.overtake(key(1), state(1));
        // Others use up the room, so that it has to be read again.
        states.put(key(2), None);
        states.put(key(3), None);
        assert!(states.get(&key(1)).is_none());
        let late = states.begin_read(key(1));
        states.end_read(key(1), early, state(7));
        assert!(states.get(&key(1)).is_none(), "what was read early is not what the client has");
        states.end_read(key(1), late, state(2));
        assert_eq!(states.get(&key(1)), Some(state(2)));
        states.forget(&[key(1).0]);
        states.end_read(key(1), early, state(7));
        assert!(states.get(&key(1)).is_none(), "nor after another thread had it");
    }

    #[test]
    fn reads_of_one_state_that_overlap_do_not_overtake_each_other() {
        let mut states = States::new(1000, usize::MAX);
        let (reader, retry) = (states.begin_read(key(1)), states.begin_read(key(1)));
        states.end_read(key(1), reader, state(1));
        assert_eq!(states.get(&key(1)), Some(state(1)));
        states.end_read(key(1), retry, state(1));
        assert_eq!(states.get(&key(1)), Some(state(1)));
    }
}
