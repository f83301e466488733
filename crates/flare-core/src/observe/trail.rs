//! The last attempts of one delivery thread's subscriptions.
//!
//! Bound: so many for each subscription, and so many bytes for all. When full: the oldest of the same subscription
//! goes; where it has no other, the oldest of the next subscription in turn.

use std::collections::{HashMap, VecDeque};

use flare_model::ids::SubscriptionNumber;
use flare_model::time::Timestamp;

use super::Limits;
use super::attempt::{Entry, Outcome};

/// The last attempts.
pub struct Trail {
    limits: Limits,
    rings: HashMap<SubscriptionNumber, Ring>,
    /// In which order subscriptions lose their oldest when there is no room. Bound: each once.
    turn: VecDeque<SubscriptionNumber>,
    next: u64,
    bytes: usize,
}

#[derive(Default)]
struct Ring {
    entries: VecDeque<Entry>,
    successes: u32,
    /// Until then the client took things that no entry tells of: what it has is not known by older ones.
    unseen_until: Option<Timestamp>,
}

impl Ring {
    /// Whether a success is the first, or the next of so many.
    fn is_sampled(&mut self, sample: u32) -> bool {
        let first = self.successes == 0 && sample > 0;
        self.successes = (self.successes + 1).checked_rem(sample).unwrap_or(0);
        first
    }
}

impl Trail {
    /// An empty one.
    pub fn new(limits: Limits) -> Trail {
        Trail { limits, rings: HashMap::new(), turn: VecDeque::new(), next: 0, bytes: 0 }
    }

    /// Keeps an attempt of a subscription, which `build` makes of its number and of whether it is to be whole: all
    /// that did not succeed are, and of those that did, one in so many.
    pub fn note(
        &mut self,
        subscription: SubscriptionNumber,
        outcome: Outcome,
        build: impl FnOnce(u64, bool) -> Entry,
    ) {
        self.next += 1;
        let turn = &mut self.turn;
        let ring = self.rings.entry(subscription).or_insert_with(|| {
            turn.push_back(subscription);
            Ring::default()
        });
        let whole = outcome != Outcome::Delivered || ring.is_sampled(self.limits.sample);
        let entry = build(self.next, whole);
        // One that is larger than all the room there is would push out the others, and then go itself.
        if self.limits.quantity == 0 || entry.bytes() > self.limits.bytes {
            ring.unseen_until = Some(entry.began).max(ring.unseen_until);
            return;
        }
        self.bytes += entry.bytes();
        ring.entries.push_back(entry);
        let too_many = |ring: &Ring| ring.entries.len() > self.limits.quantity;
        while too_many(ring) || self.bytes > self.limits.bytes && ring.entries.len() > 1 {
            self.bytes -= ring.entries.pop_front().map_or(0, |gone| gone.bytes());
        }
        while self.bytes > self.limits.bytes && self.drop_in_turn() {}
    }

    /// Drops the oldest entry of the subscription whose turn it is. False when there is nothing to drop.
    fn drop_in_turn(&mut self) -> bool {
        while let Some(subscription) = self.turn.pop_front() {
            let Some(ring) = self.rings.get_mut(&subscription) else { continue };
            let Some(gone) = ring.entries.pop_front() else {
                // It comes back with its next attempt.
                self.rings.remove(&subscription);
                continue;
            };
            self.bytes -= gone.bytes();
            self.turn.push_back(subscription);
            return true;
        }
        false
    }

    /// The client took something that is no attempt of this thread.
    pub fn delivered_unseen(&mut self, subscription: SubscriptionNumber, at: Timestamp) {
        if let Some(ring) = self.rings.get_mut(&subscription) {
            ring.unseen_until = Some(at).max(ring.unseen_until);
        }
    }

    /// Until when the client took things that no entry tells of.
    pub fn unseen_until(&self, subscription: SubscriptionNumber) -> Option<Timestamp> {
        self.rings.get(&subscription)?.unseen_until
    }

    /// The entries of a subscription, the oldest first.
    pub fn of(&self, subscription: SubscriptionNumber) -> impl Iterator<Item = &Entry> {
        self.rings.get(&subscription).into_iter().flat_map(|ring| &ring.entries)
    }

    /// A subscription is gone.
    pub fn forget(&mut self, subscription: SubscriptionNumber) {
        if let Some(ring) = self.rings.remove(&subscription) {
            self.bytes -= ring.entries.iter().map(|entry| entry.bytes()).sum::<usize>();
            self.turn.retain(|other| *other != subscription);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::notification::compiled::Compiled;
    use crate::observe::fixture::{compiled, entry};

    fn trail(quantity: usize, bytes: usize) -> Trail {
        let age = Duration::from_secs(1);
        Trail::new(Limits { quantity, age, bytes, sample: 3, excerpt: 0, watchers: 0 })
    }

    fn push(trail: &mut Trail, compiled: &Arc<Compiled>, number: u64, bytes: usize) {
        trail.note(compiled.number, Outcome::Failed, |_, _| entry(compiled, number, bytes));
    }

    fn kept(trail: &Trail, number: u64) -> Vec<u64> {
        trail.of(SubscriptionNumber(number)).map(|entry| entry.id.number()).collect()
    }

    #[test]
    fn each_subscription_keeps_its_last_ones() {
        let (one, other) = (compiled(1), compiled(2));
        let mut trail = trail(3, 1 << 20);
        push(&mut trail, &other, 100, 0);
        (0..10).for_each(|number| push(&mut trail, &one, number, 0));
        assert_eq!(
            (kept(&trail, 1), kept(&trail, 2)),
            (vec![7, 8, 9], vec![100]),
            "a busy one takes from itself"
        );
        trail.forget(SubscriptionNumber(1));
        assert_eq!((kept(&trail, 1), kept(&trail, 2)), (vec![], vec![100]));
    }

    #[test]
    fn all_of_them_stay_within_the_bytes() {
        let many: Vec<_> = (0..20).map(compiled).collect();
        let mut trail = trail(100, 10_000);
        for number in 0..200 {
            push(&mut trail, &many[number as usize % 20], number, 700);
            assert!(trail.bytes <= 10_000, "{}", trail.bytes);
        }
        let counted: usize = (0..20).flat_map(|n| trail.of(SubscriptionNumber(n))).map(|e| e.bytes()).sum();
        assert_eq!(trail.bytes, counted, "what is counted is what is there");
        assert_eq!(kept(&trail, 19), [199], "the newest is kept");
        push(&mut trail, &many[0], 1000, 50_000);
        assert_eq!(trail.bytes, counted, "one that is larger than all the room there is is not kept");
    }

    #[test]
    fn of_those_that_succeed_the_first_and_one_in_so_many_are_whole() {
        let one = compiled(1);
        let whole = |trail: &mut Trail, outcome| {
            let mut whole = false;
            trail.note(one.number, outcome, |_, wanted| {
                whole = wanted;
                entry(&one, 1, 0)
            });
            whole
        };
        let mut kept = trail(10, 100_000);
        let seen: Vec<bool> = (0..7).map(|_| whole(&mut kept, Outcome::Delivered)).collect();
        assert_eq!(seen, [true, false, false, true, false, false, true]);
        assert!(whole(&mut kept, Outcome::Failed) && whole(&mut kept, Outcome::Discarded));
        let mut none = trail(10, 100_000);
        none.limits.sample = 0;
        assert!(!whole(&mut none, Outcome::Delivered) && whole(&mut none, Outcome::Failed));
    }

    #[test]
    fn nothing_is_kept_where_nothing_is_wanted() {
        let one = compiled(1);
        let mut trail = trail(0, 10_000);
        push(&mut trail, &one, 1, 0);
        assert_eq!((kept(&trail, 1), trail.bytes), (vec![], 0));
    }
}
