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
    /// How long the next one will take, by how long the last ones took: a geometric mean, so that a few that take a hundred
    /// times as long as the others do not count for a hundred.
    expected: Option<Logarithm>,
    /// By what has ended it is quick. It stays so for longer than it takes to become so.
    is_quick: bool,
    /// Open requests that are no longer young, each by its age.
    old: [u32; 2],
}

/// Of microseconds, to base 2.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Logarithm(f32);

impl Logarithm {
    const MIDDLING: Logarithm = Logarithm(16.931_57);
    /// Four times as long.
    const QUICK_NO_MORE: Logarithm = Logarithm(18.931_57);
    const SLOW: Logarithm = Logarithm(19.931_57);

    fn of(duration: Duration) -> Logarithm {
        Logarithm((duration.as_micros() as f32).max(1.0).log2())
    }
}

impl Service {
    /// A request has ended after so long.
    pub fn ended(&mut self, took: Duration) {
        let took = Logarithm::of(took);
        let expected =
            self.expected.map_or(took, |expected| Logarithm(expected.0 + (took.0 - expected.0) / 4.0));
        let limit = if self.is_quick { Logarithm::QUICK_NO_MORE } else { Logarithm::MIDDLING };
        (self.expected, self.is_quick) = (Some(expected), expected < limit);
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
        let by_time = match self.expected {
            None => Class::New,
            Some(_) if self.is_quick => Class::Quick,
            Some(expected) if expected < Logarithm::SLOW => Class::Middling,
            Some(_) => Class::Slow,
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

    /// How many of these it takes until the class is another one.
    fn until(service: &mut Service, class: Class, took: Duration) -> usize {
        (1..100)
            .find(|_| {
                service.ended(took);
                service.class() == class
            })
            .expect("it becomes that in the end")
    }

    #[test]
    fn a_client_is_known_by_its_first_answer_and_a_few_that_take_long_do_not_change_that() {
        let mut service = Service::default();
        assert_eq!((service.class(), service.is_measured()), (Class::New, false));
        service.ended(Duration::from_millis(5));
        assert_eq!((service.class(), service.is_measured()), (Class::Quick, true));
        service.ended(Duration::from_secs(2));
        service.ended(Duration::from_secs(2));
        assert_eq!(service.class(), Class::Quick);
        assert_eq!(until(&mut service, Class::Middling, Duration::from_secs(2)), 4);
        assert_eq!(until(&mut service, Class::Slow, Duration::from_secs(8)), 1);
        assert_eq!(until(&mut service, Class::Quick, Duration::from_millis(5)), 2);
        for (millis, class) in
            [(124, Class::Quick), (126, Class::Middling), (999, Class::Middling), (1_001, Class::Slow)]
        {
            let mut service = Service::default();
            service.ended(Duration::from_millis(millis));
            assert_eq!(service.class(), class, "{millis} ms");
        }
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
