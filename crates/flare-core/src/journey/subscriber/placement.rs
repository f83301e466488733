//! Which delivery threads serve a subscription, and how what they say of it is put together.
//!
//! A subscription's lanes are dealt out to its shards, and its shards to the threads. Most have one shard, and so one
//! thread. When the number of shards changes, lanes go to other threads (`rearrange.rs`). No data moves.

use std::collections::HashMap;
use std::sync::Arc;

use flare_model::ids::SubscriptionNumber;
use flare_model::subscription::Mode;
use parking_lot::RwLock;

use crate::journey::control::{Inspection, Needs, Owes};
use crate::journey::permits::concurrency::Common;
use crate::notification::compiled::Compiled;

/// How a subscription is spread: its shards over the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The subscription.
    pub number: SubscriptionNumber,
    /// How many shards it has.
    pub shards: u32,
    /// How many delivery threads there are.
    pub threads: usize,
}

impl Placement {
    /// The thread that serves a lane.
    pub fn thread_of(&self, lane: u8) -> usize {
        self.thread_of_shard(u32::from(lane) % self.shards)
    }

    fn thread_of_shard(&self, shard: u32) -> usize {
        ((self.number.0 + u64::from(shard)) % self.threads as u64) as usize
    }

    /// The thread that serves its first lane, however many shards it has.
    pub fn first(&self) -> usize {
        self.thread_of_shard(0)
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
}

impl Compiled {
    /// How it is spread over so many delivery threads.
    pub fn placement(&self, threads: usize) -> Placement {
        Placement { number: self.number, shards: self.shards(), threads }
    }

    /// By how many shards it is served. A passive one gets as much as it asks for, in one place.
    pub fn shards(&self) -> u32 {
        match self.spec.mode {
            Mode::Active => self.spec.shards,
            Mode::Passive => 1,
        }
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
    /// Held for reading while its threads are asked something, for writing while lanes of it have no thread.
    pub gate: tokio::sync::RwLock<()>,
    place: RwLock<Place>,
}

struct Place {
    placement: Placement,
    /// By lane, the thread that serves it, while lanes go to other threads than `spread` says.
    moving: Option<Box<[usize]>>,
    /// What its threads share, once there were several.
    common: Option<Arc<Common>>,
}

impl Home {
    fn new(placement: Placement, common: Option<Arc<Common>>) -> Home {
        let place = Place { placement, moving: None, common };
        Home { gate: tokio::sync::RwLock::default(), place: RwLock::new(place) }
    }

    /// How it was spread before lanes began to go elsewhere, if they do.
    pub fn placement(&self) -> Placement {
        self.place.read().placement
    }

    /// The threads that serve it now.
    pub fn owners(&self) -> Vec<usize> {
        let place = self.place.read();
        let Some(moving) = &place.moving else { return place.placement.owners() };
        let mut owners = moving.to_vec();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// The thread that serves a lane now.
    pub fn thread_of(&self, lane: u8) -> usize {
        let place = self.place.read();
        place
            .moving
            .as_ref()
            .map_or_else(|| place.placement.thread_of(lane), |moving| moving[usize::from(lane)])
    }

    /// What its threads share, once there were several.
    pub fn common(&self) -> Option<Arc<Common>> {
        self.place.read().common.clone()
    }

    /// Whether lanes are going to other threads.
    pub fn is_moving(&self) -> bool {
        self.place.read().moving.is_some()
    }

    /// Its lanes, of which there are so many, begin to go where another spread says; what its threads share meanwhile
    /// and afterwards, if they are several.
    pub fn begins_to_move(&self, to: Placement, lanes: u16, concurrency: u32) -> Option<Arc<Common>> {
        let mut place = self.place.write();
        if place.common.is_none() && (place.placement.owners().len() > 1 || to.owners().len() > 1) {
            place.common = Some(Common::new(concurrency));
        }
        place.moving = Some((0..lanes).map(|lane| place.placement.thread_of(lane as u8)).collect());
        place.common.clone()
    }

    /// Lanes are served by other threads from now on.
    pub fn moved(&self, to: Placement, lanes: &[u8]) {
        if let Some(moving) = &mut self.place.write().moving {
            lanes.iter().for_each(|lane| moving[usize::from(*lane)] = to.thread_of(*lane));
        }
    }

    /// All lanes are where a spread says.
    pub fn has_moved(&self, to: Placement) {
        let mut place = self.place.write();
        (place.placement, place.moving) = (to, None);
    }
}

impl Homes {
    /// A subscription's home; one that is not known has one shard.
    pub fn of(&self, number: SubscriptionNumber) -> Option<Arc<Home>> {
        self.of.read().get(&number).cloned()
    }

    /// A subscription is served so from now on.
    pub fn settle(&self, placement: Placement, common: Option<Arc<Common>>) {
        self.of.write().insert(placement.number, Arc::new(Home::new(placement, common)));
    }

    /// Whether a subscription still has this home: one that is deleted has none, and gets no other.
    pub fn is_of(&self, number: SubscriptionNumber, home: &Arc<Home>) -> bool {
        self.of.read().get(&number).is_some_and(|known| Arc::ptr_eq(known, home))
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

    fn placements() -> impl Iterator<Item = Placement> {
        let numbers = (1..5).flat_map(|number| (1..9).map(move |shards| (number, shards)));
        numbers.flat_map(|(number, shards)| {
            (1..5).map(move |threads| Placement { number: SubscriptionNumber(number), shards, threads })
        })
    }

    #[test]
    fn every_lane_has_one_of_the_owners() {
        for placement in placements() {
            let owners = placement.owners();
            assert_eq!(owners.len(), (placement.shards as usize).min(placement.threads));
            for lane in 0..=255 {
                assert!(owners.contains(&placement.thread_of(lane)), "{placement:?} {lane}");
            }
        }
    }

    #[test]
    fn the_shares_of_all_threads_are_the_whole() {
        for placement in placements() {
            for total in placement.shards..30 {
                let shares: Vec<u32> =
                    placement.owners().into_iter().map(|owner| placement.share(total, owner)).collect();
                assert_eq!(shares.iter().sum::<u32>(), total, "{placement:?}");
                assert!(shares.iter().all(|share| *share > 0), "{placement:?}");
            }
        }
    }

    #[test]
    fn a_home_knows_the_thread_of_each_lane_while_lanes_move() {
        let placement = |shards| Placement { number: SubscriptionNumber(1), shards, threads: 4 };
        let home = Home::new(placement(1), None);
        assert_eq!((home.owners(), home.is_moving()), (vec![1], false));
        assert!(home.begins_to_move(placement(4), 8, 10).is_some());
        assert_eq!((home.owners(), home.thread_of(3), home.is_moving()), (vec![1], 1, true));
        home.moved(placement(4), &[1, 5]);
        assert_eq!((home.owners(), home.thread_of(5), home.thread_of(3)), (vec![1, 2], 2, 1));
        home.moved(placement(4), &[2, 3, 6, 7]);
        home.has_moved(placement(4));
        assert_eq!((home.owners(), home.thread_of(3), home.placement().first()), (vec![0, 1, 2, 3], 0, 1));
    }
}
