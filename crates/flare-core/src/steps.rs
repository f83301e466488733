//! Steps of the wall clock: both clocks come in; whether the one was set against the other goes out, and how late it surely
//! is.
//!
//! A machine that is resumed, or learns the time late, sets its wall clock by hours. Durations are measured on the
//! monotonic clock and do not notice; but what is read from disk has moments of the wall clock, and no other. Whoever
//! compares such a moment asks [`Steps::late`]: it never says that more time has passed than has.

use std::collections::VecDeque;
use std::time::Duration;

use flare_model::time::Timestamp;
use parking_lot::Mutex;

use crate::door::Clock;

/// What is less is no step: a leap second, or the pause of a thread between its looks at the two clocks.
pub const LEAST: Duration = Duration::from_secs(2);

/// Bound: so many earlier settings of the clock are remembered. When full: the two oldest are taken as one, which lasted
/// as long and was as far behind as either.
const REMEMBERED: usize = 32;

/// For so long after the start nothing is old: a machine may learn the time a little after it starts Flare.
const GRACE: Duration = Duration::from_secs(3600);

/// The steps of the wall clock since the process began.
pub struct Steps(Mutex<Inner>);

struct Inner {
    /// By how many milliseconds the wall clock is ahead of the monotonic one.
    offset: i64,
    former: VecDeque<Former>,
    seen: Seen,
}

/// How the clock was set before.
struct Former {
    offset: i64,
    /// Until when, by the monotonic clock.
    until: Duration,
}

/// How often the clock was set, and the last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// How often.
    pub steps: u64,
    /// The last step.
    pub last: Option<Step>,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When it was noticed, by the clock as it was set.
    pub at: Timestamp,
    /// How far it went, in milliseconds.
    pub by: i64,
}

impl Steps {
    /// None yet.
    pub fn new(clock: &dyn Clock) -> Steps {
        Steps(Mutex::new(Inner { offset: offset(clock), former: VecDeque::new(), seen: Seen::default() }))
    }

    /// Looks at the clocks. Answers by how many milliseconds the wall clock is ahead of the monotonic one since its last
    /// step.
    pub fn look(&self, clock: &dyn Clock) -> i64 {
        let mut inner = self.0.lock();
        inner.look(clock);
        inner.offset
    }

    /// What was seen so far.
    pub fn seen(&self) -> Seen {
        self.0.lock().seen
    }

    /// The latest that it surely is for moments that were written no longer than `within` ago: by the slowest of the
    /// clocks that were in force since. If such a moment lies so far back by this, it does by the monotonic clock.
    pub fn late(&self, clock: &dyn Clock, within: Duration) -> Timestamp {
        let mut inner = self.0.lock();
        inner.look(clock);
        let now = clock.monotonic();
        let recent = inner.former.iter().filter(|former| former.until.saturating_add(within) >= now);
        let slowest = recent.map(|former| former.offset).fold(inner.offset, i64::min);
        at(slowest, now)
    }

    /// What was written before this is surely older than `age`; `None` while the process is too young to tell.
    pub fn older_than(&self, clock: &dyn Clock, age: Duration) -> Option<Timestamp> {
        if clock.monotonic() < GRACE.min(age) {
            return None;
        }
        let millis = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Some(self.late(clock, age).moved(millis.saturating_neg()))
    }
}

impl Inner {
    fn look(&mut self, clock: &dyn Clock) {
        let (offset, now) = (offset(clock), clock.monotonic());
        let by = offset.saturating_sub(self.offset);
        if by.unsigned_abs() < LEAST.as_millis() as u64 {
            return;
        }
        self.former.push_back(Former { offset: self.offset, until: now });
        if self.former.len() > REMEMBERED
            && let (Some(oldest), Some(next)) = (self.former.pop_front(), self.former.front_mut())
        {
            next.offset = next.offset.min(oldest.offset);
        }
        self.offset = offset;
        self.seen = Seen { steps: self.seen.steps + 1, last: Some(Step { at: at(offset, now), by }) };
        tracing::warn!(
            step_ms = by,
            "the wall clock was set; durations go on as before, and nothing is removed for its age until it is certain"
        );
    }
}

/// By how many milliseconds the wall clock is ahead of the monotonic one.
pub fn offset(clock: &dyn Clock) -> i64 {
    clock.now().millis().saturating_sub(at(0, clock.monotonic()).millis())
}

/// The wall clock at a monotonic time, if it is ahead by so many milliseconds.
pub fn at(offset: i64, monotonic: Duration) -> Timestamp {
    Timestamp::from_millis(offset).saturating_add(monotonic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::ManualClock;

    const HOUR: Duration = Duration::from_secs(3600);

    fn hours(quantity: i64) -> i64 {
        quantity * 3_600_000
    }

    struct World {
        clock: ManualClock,
        steps: Steps,
    }

    impl World {
        /// A process that has been running for a thousand hours, whose wall clock says the same.
        fn old() -> World {
            let clock = ManualClock::default();
            let steps = Steps::new(&clock);
            clock.advance(HOUR * 1000);
            World { clock, steps }
        }

        fn set(&self, by: i64) {
            self.clock.jump_to(self.clock.now().moved(hours(by)));
            self.steps.look(&self.clock);
        }

        /// What was written before this, in hours, is older than ten hours.
        fn older_than_ten(&self) -> Option<i64> {
            Some(self.steps.older_than(&self.clock, HOUR * 10)?.millis() / hours(1))
        }
    }

    #[test]
    fn a_step_is_seen_with_its_size_and_what_is_less_is_none() {
        let world = World::old();
        world.clock.jump_to(world.clock.now().moved(1_999));
        assert_eq!((world.steps.look(&world.clock), world.steps.seen()), (0, Seen::default()));
        world.set(-100);
        let last = world.steps.seen().last.expect("a step");
        assert_eq!((world.steps.seen().steps, last.by), (1, 1_999 - hours(100)));
        assert_eq!(last.at, world.clock.now());
        world.steps.look(&world.clock);
        assert_eq!(world.steps.seen().steps, 1, "it is told once");
    }

    #[test]
    fn nothing_is_old_because_the_clock_was_set_forward() {
        let world = World::old();
        assert_eq!(world.older_than_ten(), Some(990));
        world.set(800);
        assert_eq!(world.older_than_ten(), Some(990), "by the clock that it was written with");
        world.clock.advance(HOUR * 9);
        assert_eq!(world.older_than_ten(), Some(999));
        world.clock.advance(HOUR + Duration::from_millis(1));
        assert_eq!(world.older_than_ten(), Some(1800), "by now all that it was written with before is older");
    }

    #[test]
    fn a_clock_that_was_ahead_for_a_while_changes_nothing() {
        let world = World::old();
        world.set(800);
        world.clock.advance(HOUR);
        world.set(-800);
        assert_eq!(world.older_than_ten(), Some(991));
        world.set(-100);
        assert_eq!(world.older_than_ten(), Some(891), "the slowest counts");
    }

    #[test]
    fn however_often_the_clock_is_set_the_slowest_is_remembered() {
        let world = World::old();
        world.set(-100);
        for _ in 0..100 {
            world.set(50);
            world.set(-40);
        }
        assert_eq!(world.older_than_ten(), Some(890));
        assert!(world.steps.0.lock().former.len() <= REMEMBERED);
    }

    #[test]
    fn a_young_process_does_not_know_what_is_old() {
        let clock = ManualClock::default();
        let steps = Steps::new(&clock);
        clock.advance(HOUR - Duration::from_millis(1));
        assert_eq!(steps.older_than(&clock, HOUR * 10), None);
        assert!(steps.older_than(&clock, HOUR / 2).is_some(), "as far as it is about what it has seen");
        clock.advance(Duration::from_millis(1));
        assert!(steps.older_than(&clock, HOUR * 10).is_some());
    }
}
