//! Which delivery threads serve a subscription.
//!
//! A subscription's lanes are dealt out to its shards, and its shards to the threads. Most have one shard, and so one
//! thread. When the number of shards changes, lanes go to other threads (`rearrange.rs`). No data moves.

use flare_model::ids::SubscriptionNumber;
use flare_model::subscription::Mode;

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
}
