//! Room for documents that were read from the store: so many bytes; what is held counts until it is let go, by whichever
//! way it goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of bytes, and how many of them are taken.
pub struct Room {
    used: Arc<AtomicUsize>,
    budget: usize,
}

/// A part of a [`Room`], given back when it is dropped.
pub struct Held {
    bytes: usize,
    used: Arc<AtomicUsize>,
}

impl Room {
    /// So many bytes.
    pub fn new(budget: usize) -> Room {
        Room { used: Arc::default(), budget }
    }

    /// How many bytes there are in all.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// How many of them are free.
    pub fn left(&self) -> usize {
        self.budget.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Takes room, if there is so much.
    pub fn take(&self, bytes: usize) -> Option<Held> {
        (bytes <= self.left()).then(|| self.insist(bytes))
    }

    /// Takes room whether there is so much or not: whoever calls this has a bound of his own.
    pub fn insist(&self, bytes: usize) -> Held {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        Held { bytes, used: self.used.clone() }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_that_is_taken_comes_back_when_it_is_let_go() {
        let room = Room::new(100);
        let held: Vec<_> = (0..5).map_while(|_| room.take(30)).collect();
        assert_eq!((held.len(), room.left()), (3, 10));
        let more = room.insist(50);
        assert_eq!((room.left(), room.take(1).is_none()), (0, true));
        drop(held);
        assert_eq!(room.left(), 50);
        drop(more);
        assert_eq!((room.left(), room.budget()), (100, 100));
    }
}
