//! The times that a feed keeps of what waits, when the wall clock is another one than it was: how long something was
//! tried stays what it was.
//!
//! The owner of a feed measures on a monotonic clock and writes moments of the wall clock, because only those mean
//! something to the next process. So when the wall clock is set, the moments move with it; and what passed while nobody
//! was there, or seems to have passed because the clock was set meanwhile, counts against nothing.

use std::time::Duration;

use super::{Feed, Standing, State, Trouble};
use crate::time::Timestamp;

impl Feed {
    /// The wall clock was set, by so many milliseconds: what waits has been tried for as long as before, and is due as
    /// soon. The end of a lease stays: the client has it in its token, and a lease ends by the monotonic clock.
    pub fn clock_moved(&mut self, by: i64) {
        let Some(few) = self.few.any() else { return };
        for (ordinal, standing) in &mut few.waiting {
            standing.moves(by);
            self.delta.standings.insert(*ordinal);
            self.delta.dirty = true;
        }
    }

    /// A new process begins at `now`, by its wall clock. Between the last attempt of the lane, or when one was due, and now
    /// nothing was tried: the node was down, or the clock was set, and neither counts against the time to live. (While the
    /// subscription `stands` still, its owner counts that.) What was written by a clock that was ahead comes back to now.
    /// To be told again changes nothing, so that nothing is recorded.
    pub fn wake_up(&mut self, now: Timestamp, stands: bool) {
        let failed = self.tally.last_failure.as_ref().map(|failure| failure.at);
        let last = self.tally.last_success_at.max(failed);
        let Some(few) = self.few.any() else { return };
        for standing in few.waiting.values_mut() {
            let Some(Trouble { last_attempt_at, .. }) = standing.trouble.as_deref() else {
                standing.is_due_by(now);
                continue;
            };
            if *last_attempt_at > now {
                standing.moves(now.millis().saturating_sub(last_attempt_at.millis()));
                continue;
            }
            if stands {
                continue;
            }
            let due = match standing.state {
                State::Waiting { due } => due,
                State::Leased { until } => until,
                State::GaveUp | State::Doubtful | State::Passed => *last_attempt_at,
            };
            let idle = now.since(due.max(*last_attempt_at).max(last.unwrap_or(due)));
            standing.prolong(idle);
        }
    }

    /// The time a subscription stood still does not count against what waits.
    pub fn prolong(&mut self, stood: Duration) {
        let Some(few) = self.few.any() else { return };
        for (ordinal, standing) in &mut few.waiting {
            if standing.prolong(stood) {
                self.delta.standings.insert(*ordinal);
                self.delta.dirty = true;
            }
        }
    }
}

impl Standing {
    /// So much of the time since the first attempt does not count. Answers whether there was an attempt.
    fn prolong(&mut self, by: Duration) -> bool {
        let Some(trouble) = &mut self.trouble else { return false };
        trouble.first_attempt_at = trouble.first_attempt_at.saturating_add(by);
        true
    }

    /// What nobody has tried yet was due when it was asked for.
    fn is_due_by(&mut self, now: Timestamp) {
        if let State::Waiting { due } = &mut self.state {
            *due = now.min(*due);
        }
    }

    fn moves(&mut self, by: i64) {
        if let State::Waiting { due } = &mut self.state {
            *due = due.moved(by);
        }
        if let Some(trouble) = &mut self.trouble {
            trouble.first_attempt_at = trouble.first_attempt_at.moved(by);
            trouble.last_attempt_at = trouble.last_attempt_at.moved(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Row;
    use crate::feed::{Action, Everything, Failure, Met, Saved, Taken, Verdict};
    use crate::ids::{Ordinal, Seq};

    const HOUR: i64 = 3_600_000;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(hours * HOUR)
    }

    /// A feed whose document was tried from the first hour to the third and is due at the fourth.
    fn waiting() -> Feed {
        let mut feed = Feed::open(Saved { issued: Seq(9), ..Saved::default() }, Seq(1));
        let row = Row { ordinal: Ordinal(0), seq: Seq(1), born: Seq(1), before: Seq(0), deleted: false };
        assert!(matches!(feed.read(&row, &mut Everything), Met::Send(_)));
        let trouble = Box::new(Trouble {
            attempts: 2,
            first_attempt_at: at(1),
            last_attempt_at: at(3),
            action: Action::Create,
            status: Some(503),
            error: None,
            response: None,
            unheard: false,
            has: None,
            lent: None,
        });
        feed.settle(Ordinal(0), Verdict::Retry { due: at(4), doubtful: false, trouble });
        feed.tally_mut().last_failure =
            Some(Box::new(Failure { at: at(3), status: None, error: String::new() }));
        feed
    }

    /// When it was first tried and is due, in hours.
    fn times(feed: &Feed) -> (i64, i64) {
        let standing = &feed.waiting()[&Ordinal(0)];
        let first = standing.trouble.as_ref().expect("it was tried").first_attempt_at;
        (first.millis() / HOUR, standing.due().expect("it waits").millis() / HOUR)
    }

    #[test]
    fn what_waits_moves_with_a_clock_that_is_set_and_is_recorded() {
        for by in [100, -100, 24 * 365 * 10] {
            let mut feed = waiting();
            let Taken { receipt, .. } = feed.take_record().expect("it was settled");
            feed.recorded(receipt);
            feed.clock_moved(by * HOUR);
            assert_eq!(times(&feed), (1 + by, 4 + by));
            assert_eq!(feed.take_record().map(|taken| taken.record.standings.len()), Some(1));
        }
    }

    #[test]
    fn the_time_that_a_node_was_down_counts_against_nothing() {
        for (now, first) in [(4, 1), (5, 2), (104, 101), (24 * 365 * 10, 24 * 365 * 10 - 3)] {
            let mut feed = waiting();
            feed.wake_up(at(now), false);
            assert_eq!(
                times(&feed),
                (first, 4),
                "it was tried for three hours until it was due; now is {now}"
            );
        }
    }

    #[test]
    fn the_time_in_which_others_of_the_lane_were_tried_counts() {
        let mut feed = waiting();
        feed.tally_mut().last_success_at = Some(at(9));
        feed.wake_up(at(10), false);
        assert_eq!(times(&feed).0, 2, "from the last success on nothing was tried");
    }

    #[test]
    fn what_nobody_has_tried_is_due_at_once_however_far_ahead_the_clock_was_that_asked_for_it() {
        let row = Row { ordinal: Ordinal(0), seq: Seq(1), born: Seq(1), before: Seq(0), deleted: false };
        let mut feed = Feed::open(Saved { cursor: Seq(1), ..Saved::default() }, Seq(1));
        assert!(feed.request(&row, 1, at(100)));
        feed.wake_up(at(3), true);
        assert_eq!(feed.waiting()[&Ordinal(0)].due(), Some(at(3)));
        feed.wake_up(at(5), false);
        assert_eq!(feed.waiting()[&Ordinal(0)].due(), Some(at(3)), "it is due already");
    }

    #[test]
    fn what_was_written_by_a_clock_that_was_ahead_comes_back_to_now() {
        let mut feed = waiting();
        feed.wake_up(at(-100), true);
        assert_eq!(times(&feed), (-102, -99));
    }
}
