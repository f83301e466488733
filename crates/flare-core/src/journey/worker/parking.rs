//! Feeds that sleep at the end of their lanes: whoever parks comes in, whoever is to be woken goes out. Who leaves in
//! between, because it was deleted or is served elsewhere, is taken out: a lane may never move again.

use std::collections::HashMap;

use flare_model::ids::{LaneId, SubscriptionNumber};

use crate::journey::subscriber::lane::ParkedAt;

/// A subscription by its place on the thread, and which one that is.
type Sleeper = (usize, SubscriptionNumber);

/// Who sleeps where. Bound: each subscription of the thread once for each of its lanes.
#[derive(Default)]
pub struct Parking {
    lanes: HashMap<LaneId, Vec<Sleeper>>,
}

impl Parking {
    /// Puts one to sleep, which is not asleep there already.
    pub fn park(&mut self, lane: LaneId, key: usize, number: SubscriptionNumber) -> ParkedAt {
        let list = self.lanes.entry(lane).or_default();
        list.push((key, number));
        ParkedAt(list.len() as u32 - 1)
    }

    /// The lane has moved: all who sleep there.
    pub fn wake(&mut self, lane: LaneId) -> Vec<Sleeper> {
        self.lanes.remove(&lane).unwrap_or_default()
    }

    /// One leaves. Answers the key of another that has its place from now on.
    pub fn leave(&mut self, lane: LaneId, place: ParkedAt) -> Option<usize> {
        let list = self.lanes.get_mut(&lane)?;
        list.swap_remove(place.0 as usize);
        let moved = list.get(place.0 as usize).map(|(key, _)| *key);
        if list.is_empty() {
            self.lanes.remove(&lane);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::ids::ResourceNumber;

    const LANE: LaneId = LaneId { resource: ResourceNumber(1), index: 0 };

    #[test]
    fn who_leaves_is_not_woken_and_leaves_nothing_behind() {
        let mut parking = Parking::default();
        let number = |key: usize| SubscriptionNumber(key as u64 + 100);
        let places: Vec<_> = (0..3).map(|key| parking.park(LANE, key, number(key))).collect();
        assert_eq!(parking.leave(LANE, places[0]), Some(2), "the last one has its place");
        assert_eq!(parking.leave(LANE, places[0]), Some(1));
        assert_eq!(parking.wake(LANE), [(1, number(1))]);
        let place = parking.park(LANE, 4, number(4));
        assert_eq!(parking.leave(LANE, place), None);
        assert!(parking.lanes.is_empty(), "a lane that nobody sleeps at takes no room");
        assert!(parking.wake(LANE).is_empty());
    }
}
