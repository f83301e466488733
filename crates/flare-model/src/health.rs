//! How a client fares, for people to read. In: what the lanes of its subscription have counted, and what was said about it.
//! Out: whether it works, since when, and why.
//!
//! The moments are recorded with each feed, so that what is shown outlives the process. A kill -9 loses what the last record
//! does not have, the outcomes of a second at most, and no more of this than of what was delivered.

use std::time::Duration;

use crate::feed::{Health, Tally};
use crate::subscription::{Status, Stored};
use crate::time::Timestamp;

impl Tally {
    /// When things turned for the client, to be written.
    pub fn health_mut(&mut self) -> &mut Health {
        self.health.get_or_insert_default()
    }

    /// When the client last took something or asked to drop it.
    pub fn well_at(&self) -> Option<Timestamp> {
        self.last_success_at.max(self.health.as_ref().and_then(|health| health.last_discard_at))
    }

    /// The counters of another lane are added; of what is last the later one stays. Whether the client fails is not added
    /// up here: see [`Fares`].
    pub fn add(&mut self, other: &Tally) {
        self.delivered += other.delivered;
        self.discarded += other.discarded;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.last_success_at = self.last_success_at.max(other.last_success_at);
        if other.last_failure.as_ref().map(|last| last.at) > self.last_failure.as_ref().map(|last| last.at) {
            self.last_failure.clone_from(&other.last_failure);
        }
        if let Some(other) = &other.health {
            let health = self.health_mut();
            health.last_discard_at = health.last_discard_at.max(other.last_discard_at);
            health.recovered_at = health.recovered_at.max(other.recovered_at);
            health.prepared_at = health.prepared_at.max(other.prepared_at);
        }
    }
}

/// Whether a client fails, as far as some lanes know, or one of the threads that serve it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fares {
    /// The first failure after which nothing was taken or dropped.
    pub failing_since: Option<Timestamp>,
    /// The last failure.
    pub failed_at: Option<Timestamp>,
    /// When something was last taken or dropped; absent where nothing ever was.
    pub well_at: Option<Timestamp>,
}

impl Fares {
    /// As one lane has recorded it.
    pub fn of(tally: &Tally) -> Fares {
        Fares {
            failing_since: tally.health.as_ref().and_then(|health| health.failing_since),
            failed_at: tally.last_failure.as_ref().map(|failure| failure.at),
            well_at: tally.well_at(),
        }
    }

    /// As two parts know it together: it fails only if nothing of it succeeded since, and a part that has tried nothing
    /// says nothing. A part that failed before and after a success of the other does not know which failure was the first
    /// after it; then it fails since the success.
    pub fn and(self, other: Fares) -> Fares {
        let well_at = self.well_at.max(other.well_at);
        let failing = |part: Fares| {
            let since = part.failing_since.filter(|_| part.well_at == well_at || part.failed_at > well_at)?;
            Some(since.max(well_at.unwrap_or(since)))
        };
        let failing_since = match (failing(self), failing(other)) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Fares { failing_since, failed_at: self.failed_at.max(other.failed_at), well_at }
    }

    /// Since when it is shown as failing, if it is: nothing has succeeded for so long, or ever.
    pub fn is_failing(&self, now: Timestamp, after: Duration) -> Option<Timestamp> {
        let since = self.failing_since?;
        (self.well_at.is_none() || now.since(since) >= after).then_some(since)
    }
}

/// What is known of a subscription beside what is stored.
#[derive(Clone, Debug, Default)]
pub struct Seen<'a> {
    /// It is to be disabled: since when, and why.
    pub decision: Option<(Timestamp, &'a str)>,
    /// Whether its client fails.
    pub fares: Fares,
    /// The sums over its lanes.
    pub tally: Option<&'a Tally>,
    /// The beginning is not through yet.
    pub preparing: bool,
}

/// Whether a subscription works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The first that holds.
    pub status: Status,
    /// Since when: it moves when the status does, and only then. One that fails does so since its first failure.
    pub since: Timestamp,
    /// Why, where there is something to say.
    pub reason: Option<String>,
}

/// How a subscription is shown at `now`; `failing_after` is how long nothing may succeed of a client that was well once.
pub fn shown(stored: &Stored, seen: &Seen<'_>, now: Timestamp, failing_after: Duration) -> Shown {
    let shown = |status, since, reason| Shown { status, since, reason };
    if let Some(disabled) = &stored.disabled {
        return shown(Status::Disabled, disabled.since, Some(disabled.reason.clone()));
    }
    if let Some((since, reason)) = seen.decision {
        return shown(Status::Disabled, since, Some(reason.to_owned()));
    }
    if let Some(since) = stored.paused_since {
        return shown(Status::Paused, since, stored.pause.as_ref().map(ToString::to_string));
    }
    if let Some(since) = seen.fares.is_failing(now, failing_after) {
        let last = seen.tally.and_then(|tally| tally.last_failure.as_ref());
        let reason = last.map(|failure| match seen.fares.well_at {
            None => format!("nothing has succeeded yet: {}", failure.error),
            Some(_) => format!("nothing has succeeded since then: {}", failure.error),
        });
        return shown(Status::Failing, since, reason);
    }
    let health = seen.tally.and_then(|tally| tally.health.as_deref());
    let begun = Some(stored.created_at)
        .max(stored.resumed_at)
        .max(health.and_then(|health| health.recovered_at))
        .unwrap_or(stored.created_at);
    if seen.preparing {
        let reason = "the client is being given the documents that were there before it".to_owned();
        return shown(Status::Preparing, begun, Some(reason));
    }
    let prepared = health.and_then(|health| health.prepared_at);
    shown(Status::Active, prepared.map_or(begun, |prepared| prepared.max(begun)), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::Failure;
    use crate::subscription::{Disabled, Pause, PausedBy};

    const AFTER: Duration = Duration::from_secs(60);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn fares(failing_since: Option<i64>, failed_at: Option<i64>, well_at: Option<i64>) -> Fares {
        Fares { failing_since: failing_since.map(at), failed_at: failed_at.map(at), well_at: well_at.map(at) }
    }

    #[test]
    fn a_client_fails_if_nothing_of_it_has_succeeded_since() {
        for (one, other, together, what) in [
            (fares(Some(1), Some(9), None), Fares::default(), Some(1), "who tried nothing says nothing"),
            (fares(Some(1), Some(9), None), fares(Some(3), Some(8), None), Some(1), "the first of both"),
            (fares(Some(1), Some(4), None), fares(None, None, Some(5)), None, "a success came after it"),
            (fares(Some(1), Some(7), None), fares(None, None, Some(5)), Some(5), "between two failures"),
            (fares(Some(6), Some(7), Some(2)), fares(None, Some(1), Some(5)), Some(6), "and before both"),
            (
                fares(Some(1), Some(4), None),
                fares(Some(6), Some(6), Some(5)),
                Some(6),
                "the other part fails",
            ),
            (fares(None, Some(4), Some(5)), fares(None, None, Some(5)), None, "all is well"),
        ] {
            for sum in [one.and(other), other.and(one)] {
                assert_eq!(sum.failing_since, together.map(at), "{what}");
                assert_eq!(sum.well_at, one.well_at.max(other.well_at));
            }
        }
    }

    #[test]
    fn a_client_that_never_succeeded_is_shown_so_from_its_first_failure() {
        assert_eq!(fares(Some(10), Some(10), None).is_failing(at(10), AFTER), Some(at(10)));
        let once_well = fares(Some(10), Some(10), Some(5));
        assert_eq!(once_well.is_failing(at(69), AFTER), None, "others have their time");
        assert_eq!(once_well.is_failing(at(70), AFTER), Some(at(10)));
        assert_eq!(fares(None, Some(10), None).is_failing(at(99), AFTER), None);
    }

    fn stored() -> Stored {
        serde_json::from_value(serde_json::json!({
            "draft": {"endpoint": {"url": "http://c.test/"}},
            "createdAt": at(1), "updatedAt": at(1),
        }))
        .unwrap()
    }

    #[test]
    fn since_moves_only_when_the_status_does() {
        let mut tally = Tally { delivered: 9, last_success_at: Some(at(90)), ..Tally::default() };
        tally.last_failure =
            Some(Box::new(Failure { at: at(80), status: Some(503), error: "answered 503".into() }));
        let look = |stored: &Stored, tally: &Tally, fares, preparing| {
            let seen = Seen { fares, tally: Some(tally), preparing, ..Seen::default() };
            let Shown { status, since, .. } = shown(stored, &seen, at(100), AFTER);
            (status, since)
        };
        let well = fares(None, Some(80), Some(90));
        let mut kept = stored();
        assert_eq!(look(&kept, &tally, well, false), (Status::Active, at(1)), "not since the last success");
        assert_eq!(look(&kept, &tally, well, true), (Status::Preparing, at(1)));
        tally.health_mut().prepared_at = Some(at(20));
        assert_eq!(look(&kept, &tally, well, false), (Status::Active, at(20)));
        tally.health_mut().recovered_at = Some(at(30));
        assert_eq!(look(&kept, &tally, well, false), (Status::Active, at(30)));
        kept.resumed_at = Some(at(40));
        assert_eq!(look(&kept, &tally, well, false), (Status::Active, at(40)));
        assert_eq!(look(&kept, &tally, well, true), (Status::Preparing, at(40)));
        let fails = fares(Some(35), Some(80), Some(30));
        assert_eq!(look(&kept, &tally, fails, true), (Status::Failing, at(35)));
        kept.paused_since = Some(at(50));
        assert_eq!(look(&kept, &tally, fails, true), (Status::Paused, at(50)));
        kept.disabled = Some(Disabled { since: at(60), reason: "gone".into(), start_over: false });
        assert_eq!(look(&kept, &tally, fails, true), (Status::Disabled, at(60)));
    }

    #[test]
    fn a_status_says_why() {
        let failure = Failure { at: at(80), status: Some(503), error: "answered 503".into() };
        let tally = Tally { last_failure: Some(Box::new(failure)), ..Tally::default() };
        let reason = |stored: &Stored, fares| {
            let seen = Seen { fares, tally: Some(&tally), ..Seen::default() };
            shown(stored, &seen, at(100), AFTER).reason
        };
        let mut kept = stored();
        let says = |text: &str| Some(text.to_owned());
        let never = fares(Some(80), Some(80), None);
        assert_eq!(reason(&kept, never), says("nothing has succeeded yet: answered 503"));
        let once = fares(Some(20), Some(80), Some(10));
        assert_eq!(reason(&kept, once), says("nothing has succeeded since then: answered 503"));
        assert_eq!(reason(&kept, Fares::default()), None);
        kept.paused_since = Some(at(50));
        assert_eq!(reason(&kept, once), None, "an earlier version paused it");
        kept.pause = Some(Box::new(Pause { by: PausedBy::WebInterface, reason: says("their migration") }));
        assert_eq!(reason(&kept, once), says("paused in the web interface: their migration"));
        let seen = Seen { decision: Some((at(7), "it is gone")), ..Seen::default() };
        let decided = shown(&kept, &seen, at(100), AFTER);
        assert_eq!(
            (decided.status, decided.since, decided.reason),
            (Status::Disabled, at(7), says("it is gone"))
        );
    }

    #[test]
    fn what_lanes_have_counted_is_added_up() {
        let mut one = Tally { delivered: 2, failed: 1, last_success_at: Some(at(5)), ..Tally::default() };
        one.health_mut().recovered_at = Some(at(4));
        let mut other = Tally { discarded: 3, skipped: 1, ..Tally::default() };
        other.health_mut().last_discard_at = Some(at(9));
        one.add(&other);
        assert_eq!((one.delivered, one.discarded, one.failed, one.skipped), (2, 3, 1, 1));
        assert_eq!((one.well_at(), one.last_success_at), (Some(at(9)), Some(at(5))));
        assert_eq!(one.health.as_ref().and_then(|health| health.recovered_at), Some(at(4)));
    }
}
