//! How much a client is asked: its rate limit, and what its recent answers allow. Pure; durations are moments of the
//! monotonic clock.

use std::time::Duration;

use flare_model::subscription::RateLimit;
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
const LONGEST_PROBE_GAP: Duration = Duration::from_secs(10);

impl Fortune {
    /// Whether nothing has succeeded lately, so that only probes are sent.
    pub fn struggling(&self) -> bool {
        self.failures >= STRUGGLING || self.hangs
    }

    /// A success: a client that struggled is asked as before; one that said "too much" gets a little more each time.
    pub fn succeeded(&mut self, concurrency: u32) {
        if self.failures > 0 {
            *self = Fortune { allowance: self.allowance, rest_until: self.rest_until, ..Fortune::default() };
        }
        if self.allowance > 0.0 {
            self.allowance += 1.0 / self.allowance;
            if self.allowance >= concurrency as f32 {
                self.allowance = 0.0;
            }
        }
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

/// A token bucket, refilled evenly with `quantity` tokens over `interval`; it holds the burst.
pub struct Bucket {
    tokens: f64,
    at: Duration,
    limit: RateLimit,
}

impl Bucket {
    /// An empty bucket: after a restart there is no burst that was not earned.
    pub fn new(limit: RateLimit, now: Duration) -> Bucket {
        Bucket { tokens: 1.0, at: now, limit }
    }

    /// The bucket of a limit: the one there is, unless it is of another limit.
    pub fn following(known: &mut Option<Bucket>, limit: RateLimit, now: Duration) -> &mut Bucket {
        known.take_if(|bucket| bucket.limit != limit);
        known.get_or_insert_with(|| Bucket::new(limit, now))
    }

    fn per_second(&self) -> f64 {
        f64::from(self.limit.quantity) / self.limit.interval.0.as_secs_f64()
    }

    fn refill(&mut self, now: Duration) {
        let earned = now.saturating_sub(self.at).as_secs_f64() * self.per_second();
        self.tokens = (self.tokens + earned).min(self.limit.burst());
        self.at = now;
    }

    /// Zero when a token is there, else how long until there is one.
    pub fn wait(&mut self, now: Duration) -> Duration {
        self.refill(now);
        if self.tokens >= 1.0 {
            return Duration::ZERO;
        }
        Duration::from_secs_f64((1.0 - self.tokens) / self.per_second()).max(Duration::from_millis(1))
    }

    /// Takes a token that [`Bucket::wait`] said is there.
    pub fn take(&mut self) {
        self.tokens -= 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::duration::HumanDuration;

    fn a_hundred_per_second(burst: Option<u32>) -> RateLimit {
        RateLimit { quantity: 100, interval: HumanDuration(Duration::from_secs(1)), burst }
    }

    fn taken(bucket: &mut Bucket, mut now: Duration, time: Duration) -> u32 {
        let (end, mut taken) = (now + time, 0);
        while now < end {
            match bucket.wait(now) {
                Duration::ZERO => {
                    bucket.take();
                    taken += 1;
                }
                wait => now += wait,
            }
        }
        taken
    }

    #[test]
    fn a_bucket_gives_no_more_than_its_rate_however_long_it_rested() {
        let mut bucket = Bucket::new(a_hundred_per_second(None), Duration::ZERO);
        let fresh = taken(&mut bucket, Duration::ZERO, Duration::from_secs(10));
        assert!((950..=1020).contains(&fresh), "{fresh} in ten seconds");
        let rested = taken(&mut bucket, Duration::from_secs(1000), Duration::from_secs(10));
        assert!((950..=1020).contains(&rested), "{rested} in ten seconds after a rest");
    }

    #[test]
    fn a_bucket_holds_its_burst_and_starts_without_one() {
        let mut bucket = Bucket::new(a_hundred_per_second(Some(50)), Duration::ZERO);
        assert_eq!(taken(&mut bucket, Duration::ZERO, Duration::from_micros(1)), 1);
        assert_eq!(taken(&mut bucket, Duration::from_secs(60), Duration::from_micros(1)), 50);
    }

    #[test]
    fn a_short_interval_gives_its_rate_though_each_wait_ends_late() {
        for (quantity, millis) in [(1, 1), (3, 10), (1, 20), (10, 100), (100, 1000)] {
            let interval = HumanDuration(Duration::from_millis(millis));
            let mut bucket = Bucket::new(RateLimit { quantity, interval, burst: None }, Duration::ZERO);
            let (mut now, mut taken, mut turn) = (Duration::ZERO, 0, 0);
            while now < Duration::from_secs(10) {
                turn += 1;
                match bucket.wait(now) {
                    Duration::ZERO => {
                        bucket.take();
                        taken += 1;
                    }
                    // A timer counts whole milliseconds, and the machine is busy elsewhere now and then.
                    wait => now += wait + Duration::from_millis(1 + turn % 4),
                }
            }
            let whole = u64::from(quantity) * 10_000 / millis;
            assert!(
                (whole * 95 / 100..=whole + 20).contains(&taken),
                "{quantity}/{millis}ms gave {taken} of {whole}"
            );
        }
    }

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
