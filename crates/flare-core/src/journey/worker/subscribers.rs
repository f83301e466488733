//! The subscriptions of a delivery thread. In: a number, or a place that was kept. Out: the subscription, unless it is not
//! here, or not any more: whoever kept its place finds nothing then, and never another one.

use std::collections::HashMap;
use std::ops::{Index, IndexMut, Range};

use flare_model::ids::SubscriptionNumber;
use slab::Slab;

use crate::journey::subscriber::Subscriber;
use crate::journey::subscriber::lane::FeedLane;

/// Where a subscription is on its thread: an index, so that nothing is looked up on the way of a delivery, and which
/// subscription that was, since an index is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    key: usize,
    number: SubscriptionNumber,
}

impl Place {
    /// Which subscription.
    pub fn number(self) -> SubscriptionNumber {
        self.number
    }

    /// A place where nothing is.
    #[cfg(test)]
    pub fn for_test(key: usize) -> Place {
        Place { key, number: SubscriptionNumber(key as u64 + 100) }
    }

    /// The place of one of its feeds.
    pub fn feed(self, lane: u8) -> FeedPlace {
        FeedPlace { place: self, lane }
    }
}

/// Where a feed is on its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeedPlace {
    /// Its subscription.
    pub place: Place,
    /// Its lane.
    pub lane: u8,
}

/// All subscriptions of a thread.
#[derive(Default)]
pub struct Subscribers {
    slab: Slab<Subscriber>,
    by_number: HashMap<SubscriptionNumber, usize>,
}

impl Subscribers {
    /// The place of a subscription, if it is served here.
    pub fn find(&self, number: SubscriptionNumber) -> Option<Place> {
        self.by_number.get(&number).map(|key| Place { key: *key, number })
    }

    /// A subscription, if it is served here.
    pub fn of(&self, number: SubscriptionNumber) -> Option<&Subscriber> {
        self.slab.get(*self.by_number.get(&number)?)
    }

    /// A subscription, if it is served here, to be changed.
    pub fn of_mut(&mut self, number: SubscriptionNumber) -> Option<&mut Subscriber> {
        self.slab.get_mut(*self.by_number.get(&number)?)
    }

    /// The subscription at a place, unless it is gone.
    pub fn get(&self, place: Place) -> Option<&Subscriber> {
        self.slab.get(place.key).filter(|subscriber| subscriber.placement.number == place.number)
    }

    /// The subscription at a place, unless it is gone, to be changed.
    pub fn get_mut(&mut self, place: Place) -> Option<&mut Subscriber> {
        self.slab.get_mut(place.key).filter(|subscriber| subscriber.placement.number == place.number)
    }

    /// A lane of the subscription at a place, if both are still here.
    pub fn lane(&self, place: Place, lane: u8) -> Option<&FeedLane> {
        self.get(place)?.lanes.get(lane)
    }

    /// A lane of the subscription at a place, if both are still here, to be changed.
    pub fn lane_mut(&mut self, place: Place, lane: u8) -> Option<&mut FeedLane> {
        self.get_mut(place)?.lanes.get_mut(lane)
    }

    /// The lanes of the subscription at a place, of those that are here.
    pub fn lanes(&self, place: Place) -> Vec<u8> {
        self.get(place).map_or_else(Vec::new, |subscriber| subscriber.lanes.numbers())
    }

    /// A subscription is served here from now on.
    pub fn insert(&mut self, subscriber: Subscriber) -> Place {
        let number = subscriber.placement.number;
        let key = self.slab.insert(subscriber);
        self.by_number.insert(number, key);
        Place { key, number }
    }

    /// A subscription is served here no more.
    pub fn remove(&mut self, number: SubscriptionNumber) -> Option<(Place, Subscriber)> {
        let key = self.by_number.remove(&number)?;
        Some((Place { key, number }, self.slab.remove(key)))
    }

    /// All of them, each with its place.
    pub fn iter(&self) -> impl Iterator<Item = (Place, &Subscriber)> {
        self.slab
            .iter()
            .map(|(key, subscriber)| (Place { key, number: subscriber.placement.number }, subscriber))
    }

    /// All of them, each with its place, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Place, &mut Subscriber)> {
        let each = self.slab.iter_mut();
        each.map(|(key, subscriber)| (Place { key, number: subscriber.placement.number }, subscriber))
    }

    /// Those at these indices, each with its place: for whoever walks over all of them in steps.
    pub fn part(&self, keys: Range<usize>) -> impl Iterator<Item = (Place, &Subscriber)> {
        let each = keys.filter_map(|key| Some((key, self.slab.get(key)?)));
        each.map(|(key, subscriber)| (Place { key, number: subscriber.placement.number }, subscriber))
    }

    /// No index is beyond this one.
    pub fn indices(&self) -> usize {
        self.slab.capacity()
    }
}

/// For whoever has just found the place: that the subscription is gone is a mistake then.
impl Index<Place> for Subscribers {
    type Output = Subscriber;

    fn index(&self, place: Place) -> &Subscriber {
        self.get(place).expect("the subscription was found on this thread just now")
    }
}

impl IndexMut<Place> for Subscribers {
    fn index_mut(&mut self, place: Place) -> &mut Subscriber {
        self.get_mut(place).expect("the subscription was found on this thread just now")
    }
}

#[cfg(test)]
mod tests {
    use flare_model::feed::Saved;
    use tokio::task::LocalSet;

    use super::*;
    use crate::journey::subscriber::Standstill;
    use crate::journey::testing::fixture::Thread;

    #[tokio::test]
    async fn a_place_that_outlived_its_subscription_finds_nothing_though_another_one_is_there() {
        let all = async {
            let thread = Thread::new();
            let FeedPlace { place: gone, lane } = thread.open(1, Saved::default(), Standstill::None);
            thread.worker.borrow_mut().remove(gone.number());
            let there = thread.open(2, Saved::default(), Standstill::None).place;
            assert_eq!(gone.key, there.key, "the index is used again");
            let subscribers = &mut thread.worker.borrow_mut().subscribers;
            assert!(subscribers.get(gone).is_none() && subscribers.lane_mut(gone, lane).is_none());
            assert!(subscribers.find(gone.number()).is_none() && subscribers.lanes(gone).is_empty());
            assert_eq!(subscribers.find(there.number()), Some(there));
            assert!(subscribers.lane(there, lane).is_some() && subscribers.lane(there, lane + 1).is_none());
        };
        LocalSet::new().run_until(all).await;
    }
}
