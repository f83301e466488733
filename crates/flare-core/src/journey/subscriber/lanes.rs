//! The lanes of a subscription that one delivery thread serves, by their numbers in the resource.

use std::ops::{Index, IndexMut};

use crate::journey::subscriber::lane::{FeedLane, Noted};

/// Some or all lanes of a subscription. Asking for one that another thread serves is a mistake, unless it is asked
/// for with [`Lanes::get_mut`].
#[derive(Default)]
pub struct Lanes {
    slots: Vec<Option<FeedLane>>,
    noted: Noted,
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

    /// What all lanes have together, as of their last [`Lanes::note`].
    pub fn noted(&self) -> Noted {
        debug_assert_eq!(self.noted, Noted::sum(self.iter()), "a lane was changed and not noted");
        self.noted
    }

    /// The feed of a lane was changed.
    pub fn note(&mut self, lane: u8) {
        let Some(slot) = self.slots.get_mut(usize::from(lane)).and_then(Option::as_mut) else { return };
        let (before, now) = (slot.aside.noted(), Noted::of(slot));
        slot.aside.note(now);
        self.noted.waiting = self.noted.waiting + now.waiting - before.waiting;
        self.noted.sweeping = self.noted.sweeping + now.sweeping - before.sweeping;
    }

    /// A lane is served here from now on.
    pub fn insert(&mut self, mut lane: FeedLane) {
        lane.aside.note(Noted::default());
        let number = lane.id.lane;
        let slot = usize::from(number);
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        self.slots[slot] = Some(lane);
        self.note(number);
    }

    /// A lane is served here no more.
    pub fn remove(&mut self, lane: u8) -> Option<FeedLane> {
        let slot = self.slots.get_mut(usize::from(lane))?.take()?;
        self.noted.waiting -= slot.aside.noted().waiting;
        self.noted.sweeping -= slot.aside.noted().sweeping;
        Some(slot)
    }

    /// Whether none is served here.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The numbers of the lanes served here.
    pub fn numbers(&self) -> Vec<u8> {
        self.iter().map(|lane| lane.id.lane).collect()
    }
}

impl FromIterator<FeedLane> for Lanes {
    fn from_iter<T: IntoIterator<Item = FeedLane>>(lanes: T) -> Self {
        let mut slots = Vec::new();
        for mut lane in lanes {
            let noted = Noted::of(&lane);
            lane.aside.note(noted);
            let number = usize::from(lane.id.lane);
            if slots.len() <= number {
                slots.resize_with(number + 1, || None);
            }
            slots[number] = Some(lane);
        }
        slots.shrink_to_fit();
        let noted = Noted::sum(slots.iter().flatten());
        Lanes { slots, noted }
    }
}

impl Index<u8> for Lanes {
    type Output = FeedLane;

    fn index(&self, lane: u8) -> &FeedLane {
        self.get(lane).expect("the lane is served by this thread")
    }
}

impl IndexMut<u8> for Lanes {
    fn index_mut(&mut self, lane: u8) -> &mut FeedLane {
        self.get_mut(lane).expect("the lane is served by this thread")
    }
}
