//! How much a client is asked, by what its recent answers allow. Pure; durations are moments of the
//! monotonic clock.

use std::time::Duration;

use flare_model::time::Timestamp;

/// Recent success and failure, which decide how much a client is asked.
#[derive(Default)]
pub struct Fortune {
    /// Failures since the last success.
    pub failures: u32,
    /// When the first of them ended. It moves with the wall clock when that is set.
    pub failing_since: Option<Timestamp>,
    /// The operator was told that it fails.
    pub told: bool,
    /// Of the time since then, how long nothing was tried because no process was there.
    pub untried: Duration,
    /// The last one was a timeout: such a client gets one slot.
    pub hangs: bool,
    /// Not before this time is the next probe.
    pub probe_at: Duration,
    /// The client asked to be left alone until then.
    pub rest_until: Duration,
    /// How many requests may be open while the client says it is too much; 0: as many as the subscription says.
    allowance: f32,
}

/// So many failures in a row, and a client is asked one thing at a time.
const STRUGGLING: u32 = 5;
/// While a client fails, at most so many documents wait for it; the rest stays in the log.
pub const WAITING_WHILE_STRUGGLING: usize = 16;

const LONGEST_PROBE_GAP: Duration = Duration::from_secs(10);

impl Fortune {
    /// Whether nothing has succeeded lately, so that only probes are sent.
    pub fn struggling(&self) -> bool {
        self.failures >= STRUGGLING || self.hangs
    }

    /// A success: a client that struggled is asked as before; one that said "too much" gets a little more each time.
    pub fn succeeded(&mut self, concurrency: u32) {
        if self.failures > 0 || self.failing_since.is_some() {
            *self = Fortune { allowance: self.allowance, rest_until: self.rest_until, ..Fortune::default() };
        }
        if self.allowance > 0.0 {
            self.allowance += 1.0 / self.allowance;
            if self.allowance >= concurrency as f32 {
                self.allowance = 0.0;
            }
        }
    }

    /// An earlier process saw failures from `since` to `until`, and nobody has tried anything by `now`. How much the client
    /// is asked is found out anew.
    pub fn remember(&mut self, since: Timestamp, until: Timestamp, now: Timestamp, failing_after: Duration) {
        self.failing_since = Some(since);
        self.untried = now.since(until);
        self.told = until.since(since) >= failing_after;
    }

    /// A failure that ended at `at`.
    pub fn failed(&mut self, at: Timestamp, now: Duration, hangs: bool) {
        self.failures = self.failures.saturating_add(1);
        self.failing_since.get_or_insert(at);
        self.hangs = hangs;
        if self.struggling() {
            let doublings = self.failures.saturating_sub(STRUGGLING).min(16);
            let gap = Duration::from_millis(10).saturating_mul(1 << doublings);
            self.probe_at = now + gap.min(LONGEST_PROBE_GAP);
        }
    }

    /// The client said "too much", with `open` requests on their way beside this one: half of that from now on. It
    /// may have said for how long it wants to be left alone.
    pub fn throttled(&mut self, now: Duration, open: u32, asked: Duration) {
        let had = (open + 1) as f32;
        let had = if self.allowance > 0.0 { had.min(self.allowance) } else { had };
        self.allowance = (had / 2.0).max(1.0);
        self.rest_until = self.rest_until.max(now + asked);
    }

    /// How many requests may be open of those the subscription allows.
    pub fn room(&self, concurrency: u32) -> u32 {
        if self.struggling() {
            1
        } else if self.allowance > 0.0 {
            concurrency.min(self.allowance as u32).max(1)
        } else {
            concurrency
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_success_ends_the_struggle() {
        let mut fortune = Fortune::default();
        for _ in 0..10 {
            fortune.failed(Timestamp::from_millis(0), Duration::ZERO, false);
        }
        assert!(fortune.struggling());
        assert!(fortune.probe_at > Duration::ZERO);
        fortune.succeeded(10);
        assert!(!fortune.struggling());
    }

    #[test]
    fn what_an_earlier_process_saw_is_known_and_holds_nobody_up() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1000);
        let mut fortune = Fortune::default();
        fortune.remember(at(10), at(80), at(500), Duration::from_secs(60));
        assert_eq!((fortune.failing_since, fortune.told), (Some(at(10)), true));
        assert_eq!(fortune.untried, Duration::from_secs(420));
        assert!(!fortune.struggling());
        fortune.succeeded(10);
        assert_eq!((fortune.failing_since, fortune.told, fortune.untried), (None, false, Duration::ZERO));
        fortune.remember(at(10), at(69), at(500), Duration::from_secs(60));
        assert!(!fortune.told, "it had not failed for long enough");
    }

    #[test]
    fn a_client_that_says_too_much_is_asked_half_and_then_a_little_more_with_each_success() {
        let mut fortune = Fortune::default();
        fortune.throttled(Duration::from_secs(1), 15, Duration::from_secs(2));
        assert_eq!(fortune.room(20), 8);
        assert_eq!(fortune.rest_until, Duration::from_secs(3));
        fortune.throttled(Duration::from_secs(1), 7, Duration::ZERO);
        assert_eq!(fortune.room(20), 4);
        for _ in 0..4 {
            fortune.succeeded(20);
        }
        assert_eq!(fortune.room(20), 4);
        for _ in 0..400 {
            fortune.succeeded(20);
        }
        assert_eq!(fortune.room(20), 20);
    }
}
