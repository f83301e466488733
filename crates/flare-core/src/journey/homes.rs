//! Where each subscription is served: its number comes in; its threads go out, also while lanes of it go to others.

use std::collections::HashMap;
use std::sync::Arc;

use flare_model::ids::SubscriptionNumber;
use parking_lot::RwLock;

use crate::journey::permits::concurrency::Common;
use crate::journey::subscriber::placement::Placement;

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
    place: RwLock<Whereabouts>,
}

struct Whereabouts {
    placement: Placement,
    /// By lane, the thread that serves it, while lanes go to other threads than `placement` says.
    moving: Option<Box<[usize]>>,
    /// What its threads share, once there were several.
    common: Option<Arc<Common>>,
}

impl Home {
    fn new(placement: Placement, common: Option<Arc<Common>>) -> Home {
        let place = Whereabouts { placement, moving: None, common };
        Home { gate: tokio::sync::RwLock::default(), place: RwLock::new(place) }
    }

    /// How it was placed before lanes began to go elsewhere, if they do.
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

    /// Its lanes, of which there are so many, begin to go where another placement says; what its threads share meanwhile
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

    /// All lanes are where a placement says.
    pub fn has_moved(&self, to: Placement) {
        let mut place = self.place.write();
        (place.placement, place.moving) = (to, None);
    }
}

impl Homes {
    /// A subscription's home, unless it is not known here, or not any more.
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

#[cfg(test)]
mod tests {
    use super::*;

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
