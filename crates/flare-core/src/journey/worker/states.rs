//! Kept states in memory: documents as their clients last got them, those that were used last.

use std::collections::HashMap;
use std::sync::Arc;

use flare_model::feed::Kept;
use flare_model::ids::{FeedId, Ordinal};

/// A state: the feed, its life, the document. A life that ended is never asked for again.
pub type StateKey = (FeedId, u64, Ordinal);

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

impl States {
    /// With so many bytes, for documents up to this size.
    pub fn new(budget: usize, largest: usize) -> States {
        let (young, old, reading) = Default::default();
        States { young, old, bytes: 0, budget, largest, reading, reads: 0 }
    }

    /// Whether a document of so many bytes is kept.
    pub fn keeps(&self, bytes: usize) -> bool {
        bytes <= self.largest
    }

    /// Nothing is known of some feeds any more: another thread may have changed them.
    pub fn forget(&mut self, feeds: &[FeedId]) {
        let others = |(feed, _, _): &StateKey| !feeds.contains(feed);
        self.reading.retain(|key, _| others(key));
        self.young.retain(|key, _| others(key));
        self.old.retain(|key, _| others(key));
    }

    /// What is known of a state, if anything is.
    pub fn get(&mut self, key: &StateKey) -> Option<Known> {
        if let Some(known) = self.young.get(key) {
            return Some(known.clone());
        }
        let known = self.old.remove(key)?;
        self.put(*key, known.clone());
        Some(known)
    }

    /// A state is about to be read from the ledger. Answers the number of the read.
    pub fn begin_read(&mut self, key: StateKey) -> u64 {
        self.reads += 1;
        *self.reading.entry(key).or_insert(self.reads)
    }

    /// A state was read, and is kept unless the document was delivered meanwhile: then it is not the newest.
    pub fn end_read(&mut self, key: StateKey, read: u64, found: Known) {
        if self.reading.get(&key) == Some(&read) {
            self.reading.remove(&key);
            self.put(key, found);
        }
    }

    /// What the client has is known from now on. What is being read is older than this.
    pub fn overtake(&mut self, key: StateKey, known: Known) {
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
