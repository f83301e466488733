//! How many ask a queue at once. How they came back goes in; how many may ask goes out. Pure.

use flare_model::bridge::Concurrency;

/// The most that one request brings.
pub const TEN: usize = 10;

/// More than these are not asked by `auto`: a hundred and sixty messages on their way keep any store busy.
const MOST: u32 = 16;

/// How many ask at once.
#[derive(Debug)]
pub struct Receivers {
    now: u32,
    least: u32,
    most: u32,
}

impl Receivers {
    pub fn new(concurrency: Concurrency) -> Receivers {
        let (least, most) = match concurrency {
            Concurrency::Auto => (1, MOST),
            Concurrency::Fixed(receivers) => (receivers.max(1), receivers.max(1)),
        };
        Receivers { now: least, least, most }
    }

    /// One came back with so many of those that it had asked for: one more where it had all, one fewer where it had none.
    pub fn came_back(&mut self, asked: usize, got: usize) {
        if got >= asked {
            self.now = (self.now + 1).min(self.most);
        } else if got == 0 {
            self.now = (self.now - 1).max(self.least);
        }
    }

    /// How many the next one asks for, while `running` ask and there is room for so many beyond what is there or on its way.
    /// None: nobody asks.
    pub fn ask(&self, running: usize, room: usize) -> Option<usize> {
        (running < self.now as usize && room > 0).then(|| room.min(TEN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_more_while_they_come_back_full_and_fewer_when_they_come_back_empty() {
        let mut receivers = Receivers::new(Concurrency::Auto);
        assert_eq!((receivers.ask(0, 500), receivers.ask(1, 490)), (Some(10), None));
        for _ in 0..100 {
            receivers.came_back(10, 10);
        }
        assert_eq!((receivers.ask(15, 500), receivers.ask(16, 500)), (Some(10), None));
        receivers.came_back(10, 4);
        assert_eq!(receivers.ask(15, 500), Some(10), "some is neither full nor empty");
        for _ in 0..100 {
            receivers.came_back(10, 0);
        }
        assert_eq!((receivers.ask(0, 500), receivers.ask(1, 500)), (Some(10), None));
    }

    #[test]
    fn nobody_asks_for_more_than_there_is_room_for() {
        let receivers = Receivers::new(Concurrency::Fixed(3));
        assert_eq!([0, 3, 10, 11].map(|room| receivers.ask(0, room)), [None, Some(3), Some(10), Some(10)]);
    }

    #[test]
    fn a_number_that_was_given_stays() {
        let mut receivers = Receivers::new(Concurrency::Fixed(3));
        receivers.came_back(10, 0);
        receivers.came_back(10, 10);
        assert_eq!((receivers.ask(2, 500), receivers.ask(3, 500)), (Some(10), None));
    }
}
