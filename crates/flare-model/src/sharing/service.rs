//! How long the requests of a client take: those that have ended, and those that are open come in; its class goes out.

use std::time::Duration;

use super::Class;

/// How long a request has been open that is no longer young. The earlier comes before the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Age {
    /// As long as those of a client in the middle.
    Middling,
    /// As long as those of a slow client.
    Slow,
}

impl Age {
    /// When it is reached.
    pub fn reached_after(self) -> Duration {
        match self {
            Age::Middling => Duration::from_millis(125),
            Age::Slow => Duration::from_secs(1),
        }
    }

    /// Whose requests are of this age.
    pub fn class(self) -> Class {
        match self {
            Age::Middling => Class::Middling,
            Age::Slow => Class::Slow,
        }
    }
}

/// What is known of one client.
#[derive(Clone, Copy, Debug, Default)]
pub struct Service {
    /// How long the next one will take, by how long the last ones took.
    expected: Option<Duration>,
    /// Open requests that are no longer young, each by its age.
    old: [u32; 2],
}

impl Service {
    /// A request has ended after so long.
    pub fn ended(&mut self, took: Duration) {
        // A quarter of what is new: one that took long among quick ones is forgotten after a few.
        self.expected = Some(self.expected.map_or(took, |expected| (expected * 3 + took) / 4));
    }

    /// A request that is open has come to an age, from the one before.
    pub fn ages(&mut self, age: Age) {
        if age == Age::Slow {
            self.old[0] = self.old[0].saturating_sub(1);
        }
        self.old[age as usize] += 1;
    }

    /// A request that had come to an age is open no more.
    pub fn is_rid_of(&mut self, age: Age) {
        self.old[age as usize] = self.old[age as usize].saturating_sub(1);
    }

    /// Whether one has ended.
    pub fn is_measured(&self) -> bool {
        self.expected.is_some()
    }

    /// By what has ended and by what is open: a client that hangs is slow before its first request has ended.
    pub fn class(&self) -> Class {
        let is = |age: Age, at_least: Duration| at_least >= age.reached_after();
        let by_time = match self.expected {
            None => Class::New,
            Some(expected) if is(Age::Slow, expected) => Class::Slow,
            Some(expected) if is(Age::Middling, expected) => Class::Middling,
            Some(_) => Class::Quick,
        };
        let by_age = match self.old {
            [0, 0] => Class::Quick,
            [_, 0] => Class::Middling,
            _ => Class::Slow,
        };
        by_time.max(by_age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_known_by_its_first_answer_and_one_long_request_is_forgotten_after_a_few() {
        let mut service = Service::default();
        assert_eq!((service.class(), service.is_measured()), (Class::New, false));
        service.ended(Duration::from_millis(5));
        assert_eq!((service.class(), service.is_measured()), (Class::Quick, true));
        service.ended(Duration::from_secs(2));
        assert_eq!(service.class(), Class::Middling);
        let quick = (1..).find(|_| {
            service.ended(Duration::from_millis(5));
            service.class() == Class::Quick
        });
        assert_eq!(quick, Some(5));
        (0..20).for_each(|_| service.ended(Duration::from_secs(8)));
        assert_eq!(service.class(), Class::Slow);
    }

    #[test]
    fn a_client_whose_requests_are_open_for_long_is_slow_before_they_end() {
        for measured in [false, true] {
            let mut service = Service::default();
            if measured {
                service.ended(Duration::from_millis(1));
            }
            service.ages(Age::Middling);
            service.ages(Age::Middling);
            assert_eq!(service.class(), Class::Middling);
            service.ages(Age::Slow);
            assert_eq!(service.class(), Class::Slow);
            service.is_rid_of(Age::Slow);
            assert_eq!(service.class(), Class::Middling);
            service.is_rid_of(Age::Middling);
            assert_eq!(service.class(), if measured { Class::Quick } else { Class::New });
        }
    }
}
