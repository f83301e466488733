//! In: durations, any number of them. Out: half of them, and all but one of a hundred, are no longer than so.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

/// Each bucket ends so much higher than the one before: what is said is at most a twentieth too much.
const STEP: f64 = 1.05;

/// The last one has what is longer than five minutes.
const BUCKETS: usize = 400;

/// Counts durations, from any number of threads.
pub struct Durations([AtomicU64; BUCKETS]);

/// How long something took, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Half took no longer.
    pub p50: f64,
    /// One of a hundred took longer.
    pub p99: f64,
}

impl Durations {
    /// None yet.
    pub fn new() -> Durations {
        Durations([const { AtomicU64::new(0) }; BUCKETS])
    }

    /// One more.
    pub fn add(&self, duration: Duration) {
        let micros = (duration.as_nanos() as f64 / 1000.0).max(1.0);
        let bucket = (micros.ln() / STEP.ln()).ceil() as usize;
        self.0[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    /// How they spread.
    pub fn spread(&self) -> Spread {
        let total: u64 = self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        let within = |share: f64| {
            let wanted = (total as f64 * share).ceil() as u64;
            let mut seen = 0;
            let bucket = self.0.iter().position(|count| {
                seen += count.load(Ordering::Relaxed);
                seen >= wanted
            });
            // To what people compare.
            (STEP.powi(bucket.unwrap_or(0) as i32)).round() / 1000.0
        };
        Spread { p50: within(0.5), p99: within(0.99) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p50 {:.1} ms   p99 {:.1} ms", self.p50, self.p99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_at_most_a_twentieth_too_much() {
        let durations = Durations::new();
        for millis in 1..=100 {
            durations.add(Duration::from_millis(millis));
        }
        let Spread { p50, p99 } = durations.spread();
        assert!((50.0..=52.5).contains(&p50) && (99.0..=104.0).contains(&p99), "{p50} {p99}");
        durations.add(Duration::from_secs(86_400));
        assert!(durations.spread().p99 <= 105.0, "one of a hundred is not told");
    }
}
