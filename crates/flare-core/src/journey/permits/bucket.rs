//! A rate limit: how long until the next attempt may begin. Pure; durations are moments of the monotonic clock.

use std::time::Duration;

use flare_model::subscription::RateLimit;

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
    pub fn following(known: &mut Option<Box<Bucket>>, limit: RateLimit, now: Duration) -> &mut Bucket {
        known.take_if(|bucket| bucket.limit != limit);
        known.get_or_insert_with(|| Box::new(Bucket::new(limit, now)))
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
}
