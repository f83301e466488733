//! Which delivery threads serve a subscription, and how what they say of it is put together.
//!
//! A subscription's lanes are dealt out to its shards, and its shards to the threads. Most have one shard, and so one
//! thread. When the number of shards changes, the threads that have its lanes first finish what is in flight, then
//! record and let go; then the store is asked again and the lanes go to their new threads. No data moves.

use std::collections::HashMap;
use std::sync::Arc;

use flare_model::ids::SubscriptionNumber;
use flare_model::subscription::RateLimit;
use parking_lot::RwLock;

use super::control::{Inspection, Needs, Owes};

/// How a subscription is spread: its shards over the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The subscription.
    pub number: SubscriptionNumber,
    /// How many shards it has.
    pub shards: u32,
    /// How many delivery threads there are.
    pub threads: usize,
}

impl Spread {
    /// The thread that serves a lane.
    pub fn thread_of(&self, lane: u8) -> usize {
        self.thread_of_shard(u32::from(lane) % self.shards)
    }

    fn thread_of_shard(&self, shard: u32) -> usize {
        ((self.number.0 + u64::from(shard)) % self.threads as u64) as usize
    }

    /// The threads that serve it.
    pub fn owners(&self) -> Vec<usize> {
        let mut owners: Vec<usize> = (0..self.shards).map(|shard| self.thread_of_shard(shard)).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// The part of a number that falls to a thread: each shard gets its part, and the first ones what is left over.
    pub fn share(&self, total: u32, thread: usize) -> u32 {
        if self.shards == 1 {
            return total;
        }
        let (each, over) = (total / self.shards, total % self.shards);
        let mine = (0..self.shards).filter(|shard| self.thread_of_shard(*shard) == thread);
        mine.map(|shard| each + u32::from(shard < over)).sum()
    }

    /// The part of a rate limit that falls to a thread.
    pub fn share_of_rate(&self, limit: RateLimit, thread: usize) -> RateLimit {
        let quantity = self.share(limit.quantity, thread).max(1);
        let burst = limit.burst.map(|burst| self.share(burst, thread).clamp(1, quantity));
        RateLimit { quantity, burst, ..limit }
    }
}

/// Where each subscription is served now.
#[derive(Default)]
pub struct Homes {
    /// Bound: one for each subscription.
    of: RwLock<HashMap<SubscriptionNumber, Arc<Home>>>,
}

/// Where one subscription is served.
pub struct Home {
    /// Held for reading while its threads are asked something, for writing while it has no threads at all.
    pub gate: tokio::sync::RwLock<()>,
    spread: RwLock<Spread>,
}

impl Home {
    /// How it is spread now.
    pub fn spread(&self) -> Spread {
        *self.spread.read()
    }
}

impl Homes {
    /// A subscription's home; one that is not known has one shard.
    pub fn of(&self, number: SubscriptionNumber) -> Option<Arc<Home>> {
        self.of.read().get(&number).cloned()
    }

    /// A subscription is served so from now on.
    pub fn settle(&self, spread: Spread) {
        let mut of = self.of.write();
        match of.get(&spread.number) {
            Some(home) => *home.spread.write() = spread,
            None => {
                let home = Home { gate: tokio::sync::RwLock::default(), spread: RwLock::new(spread) };
                of.insert(spread.number, Arc::new(home));
            }
        }
    }

    /// A subscription is gone.
    pub fn forget(&self, number: SubscriptionNumber) {
        self.of.write().remove(&number);
    }
}

/// What several threads say of one subscription, as one answer.
pub trait Merge {
    /// Both as one.
    fn merge(self, other: Self) -> Self;
}

impl Merge for () {
    fn merge(self, (): ()) {}
}

impl Merge for bool {
    /// Only what all say yes to is a yes.
    fn merge(self, other: bool) -> bool {
        self && other
    }
}

impl Merge for usize {
    fn merge(self, other: usize) -> usize {
        self + other
    }
}

impl<T> Merge for Vec<T> {
    fn merge(mut self, other: Vec<T>) -> Vec<T> {
        self.extend(other);
        self
    }
}

impl<T: Merge> Merge for Option<T> {
    fn merge(self, other: Option<T>) -> Option<T> {
        match (self, other) {
            (Some(one), Some(other)) => Some(one.merge(other)),
            (one, other) => one.or(other),
        }
    }
}

impl Merge for Needs {
    /// A lane has one thread; nothing is said twice.
    fn merge(self, _: Needs) -> Needs {
        self
    }
}

impl Merge for Owes {
    /// A lane has one thread; nothing is said twice.
    fn merge(self, _: Owes) -> Owes {
        self
    }
}

impl Merge for Inspection {
    fn merge(mut self, other: Inspection) -> Inspection {
        self.cursor += other.cursor;
        self.head += other.head;
        self.lagging += other.lagging;
        self.waiting += other.waiting;
        self.in_flight += other.in_flight;
        self.dead_letters += other.dead_letters;
        self.held += other.held;
        self.tally.delivered += other.tally.delivered;
        self.tally.discarded += other.tally.discarded;
        self.tally.failed += other.tally.failed;
        self.tally.skipped += other.tally.skipped;
        self.tally.last_success_at = self.tally.last_success_at.max(other.tally.last_success_at);
        let at = |failure: &Option<Box<flare_model::feed::Failure>>| failure.as_ref().map(|f| f.at);
        if at(&other.tally.last_failure) > at(&self.tally.last_failure) {
            self.tally.last_failure = other.tally.last_failure;
        }
        // It fails only if no part of it succeeds.
        self.failing_since = self.failing_since.zip(other.failing_since).map(|(one, other)| one.max(other));
        self.preparing |= other.preparing;
        self.decision = self.decision.merge(other.decision);
        self.sweep = self.sweep.or(other.sweep);
        if let Some(other) = &other.filtering {
            self.filtering.get_or_insert_default().add(other);
        }
        self.breaker = self.breaker.or(other.breaker);
        for (replay, left) in other.replays {
            let sum = self.replays.entry(replay).or_default();
            sum.waiting += left.waiting;
            sum.sweeping.extend(left.sweeping);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::duration::HumanDuration;
    use std::time::Duration;

    fn spreads() -> impl Iterator<Item = Spread> {
        let numbers = (1..5).flat_map(|number| (1..9).map(move |shards| (number, shards)));
        numbers.flat_map(|(number, shards)| {
            (1..5).map(move |threads| Spread { number: SubscriptionNumber(number), shards, threads })
        })
    }

    #[test]
    fn every_lane_has_one_of_the_owners() {
        for spread in spreads() {
            let owners = spread.owners();
            assert_eq!(owners.len(), (spread.shards as usize).min(spread.threads));
            for lane in 0..=255 {
                assert!(owners.contains(&spread.thread_of(lane)), "{spread:?} {lane}");
            }
        }
    }

    #[test]
    fn the_shares_of_all_threads_are_the_whole() {
        for spread in spreads() {
            for total in spread.shards..30 {
                let shares: Vec<u32> =
                    spread.owners().into_iter().map(|owner| spread.share(total, owner)).collect();
                assert_eq!(shares.iter().sum::<u32>(), total, "{spread:?}");
                assert!(shares.iter().all(|share| *share > 0), "{spread:?}");
            }
        }
    }

    #[test]
    fn a_rate_is_shared_out_and_not_multiplied() {
        let limit =
            RateLimit { quantity: 100, interval: HumanDuration(Duration::from_secs(1)), burst: Some(10) };
        let spread = Spread { number: SubscriptionNumber(1), shards: 4, threads: 2 };
        let parts: Vec<RateLimit> =
            spread.owners().into_iter().map(|owner| spread.share_of_rate(limit, owner)).collect();
        assert_eq!(parts.iter().map(|part| part.quantity).sum::<u32>(), 100);
        assert_eq!(parts.iter().map(RateLimit::burst).sum::<f64>(), 10.0);
    }
}
