//! Where each subscription is served: its number comes in; its threads go out, also while lanes of it go to others.
//! Lanes that another node serves have no thread here.

use std::collections::HashMap;
use std::sync::Arc;

use flare_model::ids::SubscriptionNumber;
use parking_lot::RwLock;

use crate::journey::permits::concurrency::Common;
use crate::journey::subscriber::placement::Placement;

/// No thread of this node has the lane.
const ELSEWHERE: u8 = u8::MAX;

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
    /// By lane, the thread that serves it; there are 64 at most.
    threads: Box<[u8]>,
    /// Lanes go to other threads than `placement` says.
    moving: bool,
    /// What its threads share, once there were several.
    common: Option<Arc<Common>>,
}

impl Home {
    fn new(placement: Placement, lanes: u16) -> Home {
        let threads = vec![ELSEWHERE; usize::from(lanes)].into();
        let place = Whereabouts { placement, threads, moving: false, common: None };
        Home { gate: tokio::sync::RwLock::default(), place: RwLock::new(place) }
    }

    /// How it was placed before lanes began to go elsewhere, if they do.
    pub fn placement(&self) -> Placement {
        self.place.read().placement
    }

    /// The threads that serve it now.
    pub fn owners(&self) -> Vec<usize> {
        let place = self.place.read();
        let here = place.threads.iter().filter(|thread| **thread != ELSEWHERE);
        let mut owners: Vec<usize> = here.map(|thread| usize::from(*thread)).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// The thread that serves the first of the lanes that are here.
    pub fn first(&self) -> Option<usize> {
        let place = self.place.read();
        place.threads.iter().find(|thread| **thread != ELSEWHERE).map(|thread| usize::from(*thread))
    }

    /// The thread that serves a lane now, if one does.
    pub fn thread_of(&self, lane: u8) -> Option<usize> {
        let place = self.place.read();
        let thread = place.threads.get(usize::from(lane)).copied().filter(|thread| *thread != ELSEWHERE)?;
        Some(usize::from(thread))
    }

    /// The lanes that are served here.
    pub fn lanes(&self) -> Vec<u8> {
        let place = self.place.read();
        let here = place.threads.iter().enumerate().filter(|(_, thread)| **thread != ELSEWHERE);
        here.map(|(lane, _)| lane as u8).collect()
    }

    /// Whether all lanes are served here.
    pub fn is_whole(&self) -> bool {
        self.place.read().threads.iter().all(|thread| *thread != ELSEWHERE)
    }

    /// What its threads share, once there were several.
    pub fn common(&self) -> Option<Arc<Common>> {
        self.place.read().common.clone()
    }

    /// The same, made if there are several by now.
    pub fn common_for(&self, concurrency: u32) -> Option<Arc<Common>> {
        let mut place = self.place.write();
        if place.common.is_none() && place.placement.owners().len() > 1 {
            place.common = Some(Common::new(concurrency));
        }
        place.common.clone()
    }

    /// Whether lanes are going to other threads.
    pub fn is_moving(&self) -> bool {
        self.place.read().moving
    }

    /// Its lanes begin to go where another placement says; what its threads share meanwhile and afterwards, if they are
    /// several.
    pub fn begins_to_move(&self, to: Placement, concurrency: u32) -> Option<Arc<Common>> {
        let mut place = self.place.write();
        if place.common.is_none() && (place.placement.owners().len() > 1 || to.owners().len() > 1) {
            place.common = Some(Common::new(concurrency));
        }
        place.moving = true;
        place.common.clone()
    }

    /// Lanes are served by the threads that a placement says from now on.
    pub fn came(&self, to: Placement, lanes: &[u8]) {
        let threads = &mut self.place.write().threads;
        lanes.iter().for_each(|lane| threads[usize::from(*lane)] = to.thread_of(*lane) as u8);
    }

    /// Lanes are served here no more. Answers whether none is left.
    pub fn left(&self, lanes: &[u8]) -> bool {
        let threads = &mut self.place.write().threads;
        lanes.iter().for_each(|lane| threads[usize::from(*lane)] = ELSEWHERE);
        threads.iter().all(|thread| *thread == ELSEWHERE)
    }

    /// All lanes that are here are where a placement says.
    pub fn has_moved(&self, to: Placement) {
        let mut place = self.place.write();
        (place.placement, place.moving) = (to, false);
    }
}

impl Homes {
    /// A subscription's home, unless it is not known here, or not any more.
    pub fn of(&self, number: SubscriptionNumber) -> Option<Arc<Home>> {
        self.of.read().get(&number).cloned()
    }

    /// A subscription's home, made if it has none.
    pub fn settle(&self, placement: Placement, lanes: u16) -> Arc<Home> {
        let mut of = self.of.write();
        of.entry(placement.number).or_insert_with(|| Arc::new(Home::new(placement, lanes))).clone()
    }

    /// Whether a subscription still has this home: one that is deleted has none, and gets no other.
    pub fn is_of(&self, number: SubscriptionNumber, home: &Arc<Home>) -> bool {
        self.of.read().get(&number).is_some_and(|known| Arc::ptr_eq(known, home))
    }

    /// A subscription is gone.
    pub fn forget(&self, number: SubscriptionNumber) {
        self.of.write().remove(&number);
    }

    /// All subscriptions that have lanes here.
    pub fn all(&self) -> Vec<SubscriptionNumber> {
        self.of.read().keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_knows_the_thread_of_each_lane_while_lanes_move() {
        let placement = |shards| Placement { number: SubscriptionNumber(1), shards, threads: 4 };
        let home = Home::new(placement(1), 8);
        assert_eq!((home.owners(), home.first(), home.is_whole()), (vec![], None, false));
        home.came(placement(1), &[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!((home.owners(), home.is_moving(), home.is_whole()), (vec![1], false, true));
        assert!(home.begins_to_move(placement(4), 10).is_some());
        assert_eq!((home.owners(), home.thread_of(3), home.is_moving()), (vec![1], Some(1), true));
        home.came(placement(4), &[1, 5]);
        assert_eq!((home.owners(), home.thread_of(5), home.thread_of(3)), (vec![1, 2], Some(2), Some(1)));
        home.came(placement(4), &[2, 3, 6, 7]);
        home.has_moved(placement(4));
        assert_eq!((home.owners(), home.thread_of(3), home.first()), (vec![0, 1, 2, 3], Some(0), Some(1)));
    }

    #[test]
    fn lanes_that_leave_the_node_have_no_thread_here() {
        let placement = Placement { number: SubscriptionNumber(1), shards: 2, threads: 2 };
        let home = Home::new(placement, 4);
        home.came(placement, &[0, 1, 2, 3]);
        assert!(!home.left(&[0, 2]));
        assert_eq!((home.owners(), home.lanes(), home.thread_of(0)), (vec![0], vec![1, 3], None));
        assert!(home.left(&[1, 3]), "none is left");
    }
}
