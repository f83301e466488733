//! Feeds that sleep at the end of their lanes: whoever parks comes in, whoever is to be woken goes out. Who leaves in
//! between, because it was deleted or is served elsewhere, is taken out: a lane may never move again.

use std::collections::HashMap;

use flare_model::ids::LaneId;

use crate::journey::subscriber::lane::ParkedAt;
use crate::journey::worker::subscribers::Place;

/// Who sleeps where. Bound: each subscription of the thread once for each of its lanes.
#[derive(Default)]
pub struct Parking {
    lanes: HashMap<LaneId, Vec<Place>>,
}

impl Parking {
    /// Puts one to sleep, which is not asleep there already.
    pub fn park(&mut self, lane: LaneId, sleeper: Place) -> ParkedAt {
        let list = self.lanes.entry(lane).or_default();
        list.push(sleeper);
        ParkedAt(list.len() as u32 - 1)
    }

    /// The lane has moved: all who sleep there.
    pub fn wake(&mut self, lane: LaneId) -> Vec<Place> {
        self.lanes.remove(&lane).unwrap_or_default()
    }

    /// One leaves. Answers who is in the list where it was, from now on.
    pub fn leave(&mut self, lane: LaneId, at: ParkedAt) -> Option<Place> {
        let list = self.lanes.get_mut(&lane)?;
        list.swap_remove(at.0 as usize);
        let moved = list.get(at.0 as usize).copied();
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
        let [first, second, third, fourth] = [0, 1, 2, 4].map(Place::for_test);
        let at = [first, second, third].map(|sleeper| parking.park(LANE, sleeper));
        assert_eq!(parking.leave(LANE, at[0]), Some(third), "the last one is where it was");
        assert_eq!(parking.leave(LANE, at[0]), Some(second));
        assert_eq!(parking.wake(LANE), [second]);
        let at = parking.park(LANE, fourth);
        assert_eq!(parking.leave(LANE, at), None);
        assert!(parking.lanes.is_empty(), "a lane that nobody sleeps at takes no room");
        assert!(parking.wake(LANE).is_empty());
    }
}
