//! Who stands in line at a host, on one thread. In: subscriptions with something to take. Out: whose turn it is.

use std::collections::VecDeque;

use flare_model::sharing::{Class, Line};

use crate::journey::worker::subscribers::Place;

/// After so many that are quick somebody has a turn who is not, if there is one.
const QUICK_IN_A_ROW: u8 = 3;

/// Subscriptions that wait for a connection. Bound: each once, in the queue or in a line.
#[derive(Default)]
pub struct Queue {
    /// Those that are asked though others got no answer there. They are first.
    trusted: VecDeque<Place>,
    /// Those whose requests end quickly.
    quick: VecDeque<Place>,
    /// The others, which have their share, or try for it when it is their turn.
    patient: VecDeque<Place>,
    in_a_row: u8,
    /// Those that wait for their share, by class: new, middling, slow.
    lines: [Line<Place>; 3],
}

/// Which part of a [`Queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Those that are asked though others got no answer.
    Trusted,
    /// Those whose requests end quickly.
    Quick,
    /// The others.
    Patient,
}

impl Queue {
    /// Somebody has something to take.
    pub fn push(&mut self, place: Place, part: Part) {
        match part {
            Part::Trusted => self.trusted.push_back(place),
            Part::Quick => self.quick.push_back(place),
            Part::Patient => self.patient.push_back(place),
        }
    }

    /// Whose turn it is: who is quick, and somebody else now and then.
    pub fn pop(&mut self) -> Option<Place> {
        if let Some(place) = self.trusted.pop_front() {
            return Some(place);
        }
        if self.in_a_row < QUICK_IN_A_ROW || self.patient.is_empty() {
            self.in_a_row = self.in_a_row.saturating_add(1);
            if let Some(place) = self.quick.pop_front() {
                return Some(place);
            }
        }
        self.in_a_row = 0;
        self.patient.pop_front()
    }

    /// The next one of those that are asked though others got no answer.
    pub fn pop_trusted(&mut self) -> Option<Place> {
        self.trusted.pop_front()
    }

    /// Whether there is one of those.
    pub fn has_trusted(&self) -> bool {
        !self.trusted.is_empty()
    }

    /// Whether somebody is there who is quick, and so in no line.
    pub fn has_quick(&self) -> bool {
        !self.quick.is_empty()
    }

    /// Puts those first whom it is true of.
    pub fn trust(&mut self, is_trusted: impl Fn(Place) -> bool) {
        for part in [&mut self.quick, &mut self.patient] {
            let (first, rest) = part.iter().partition(|place| is_trusted(**place));
            *part = rest;
            self.trusted.extend::<VecDeque<Place>>(first);
        }
    }

    /// Those who may have their share and not used it yet.
    pub fn patient(&self) -> impl Iterator<Item = Place> {
        self.patient.iter().chain(&self.trusted).copied()
    }

    /// Somebody leaves the queue.
    pub fn leave(&mut self, place: Place) {
        for part in [&mut self.trusted, &mut self.quick, &mut self.patient] {
            part.retain(|waiting| *waiting != place);
        }
    }

    /// How many have something to take. Those who wait for their share are not among them.
    pub fn len(&self) -> usize {
        self.trusted.len() + self.quick.len() + self.patient.len()
    }

    /// Whether nobody has.
    pub fn is_empty(&self) -> bool {
        self.trusted.is_empty() && self.quick.is_empty() && self.patient.is_empty()
    }

    /// The line of those who wait for a share of this class.
    pub fn line(&mut self, class: Class) -> &mut Line<Place> {
        &mut self.lines[(class as usize).saturating_sub(1)]
    }

    /// How many wait for their share.
    pub fn in_line(&self) -> usize {
        self.lines.iter().map(Line::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_go_first_and_the_others_are_not_forgotten() {
        let mut queue = Queue::default();
        (0..9).for_each(|key| queue.push(Place::for_test(key), Part::Quick));
        (10..12).for_each(|key| queue.push(Place::for_test(key), Part::Patient));
        queue.push(Place::for_test(20), Part::Trusted);
        assert_eq!((queue.len(), queue.in_line()), (12, 0));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        let expected = [20, 0, 1, 2, 10, 3, 4, 5, 11, 6, 7, 8].map(Place::for_test);
        assert_eq!(order, expected);
        assert!(queue.is_empty());
    }

    #[test]
    fn who_is_trusted_comes_first_wherever_it_stood() {
        let mut queue = Queue::default();
        (0..3).for_each(|key| queue.push(Place::for_test(key), Part::Quick));
        (3..6).for_each(|key| queue.push(Place::for_test(key), Part::Patient));
        queue.trust(|place| [1, 4].map(Place::for_test).contains(&place));
        assert_eq!([queue.pop_trusted(), queue.pop_trusted()], [1, 4].map(|key| Some(Place::for_test(key))));
        assert!(!queue.has_trusted() && queue.len() == 4);
        queue.leave(Place::for_test(0));
        assert_eq!(queue.pop(), Some(Place::for_test(2)));
    }
}
