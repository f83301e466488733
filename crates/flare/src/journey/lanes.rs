//! The lanes of a subscription that one delivery thread serves, by their numbers in the resource.

use std::ops::{Index, IndexMut};

use super::subscriber::FeedLane;

/// Some or all lanes of a subscription. Asking for one that another thread serves is a mistake, unless it is asked
/// for with [`Lanes::get_mut`].
#[derive(Default)]
pub struct Lanes {
    slots: Vec<Option<FeedLane>>,
}

impl Lanes {
    /// A lane, if it is served here.
    pub fn get(&self, lane: u8) -> Option<&FeedLane> {
        self.slots.get(usize::from(lane))?.as_ref()
    }

    /// A lane, if it is served here, to be changed.
    pub fn get_mut(&mut self, lane: u8) -> Option<&mut FeedLane> {
        self.slots.get_mut(usize::from(lane))?.as_mut()
    }

    /// The lanes served here.
    pub fn iter(&self) -> impl Iterator<Item = &FeedLane> {
        self.slots.iter().flatten()
    }

    /// The lanes served here, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut FeedLane> {
        self.slots.iter_mut().flatten()
    }

    /// The numbers of the lanes served here.
    pub fn numbers(&self) -> Vec<u8> {
        self.iter().map(|lane| lane.id.lane).collect()
    }
}

impl FromIterator<FeedLane> for Lanes {
    fn from_iter<T: IntoIterator<Item = FeedLane>>(lanes: T) -> Self {
        let mut slots = Vec::new();
        for lane in lanes {
            let number = usize::from(lane.id.lane);
            if slots.len() <= number {
                slots.resize_with(number + 1, || None);
            }
            slots[number] = Some(lane);
        }
        slots.shrink_to_fit();
        Lanes { slots }
    }
}

impl Index<usize> for Lanes {
    type Output = FeedLane;

    fn index(&self, lane: usize) -> &FeedLane {
        self.slots[lane].as_ref().expect("the lane is served by this thread")
    }
}

impl IndexMut<usize> for Lanes {
    fn index_mut(&mut self, lane: usize) -> &mut FeedLane {
        self.slots[lane].as_mut().expect("the lane is served by this thread")
    }
}
