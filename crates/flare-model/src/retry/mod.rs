//! In: a retry policy as a subscription gives it, and how often and how long a notification was tried. Out: when to
//! try again, or that and why it is given up. Chance comes in as a number, time as a duration.
//!
//! The phases after the first attempt, in order: `immediate` retries without delay, `preBackoff` retries at
//! `interval`, the backoff from `interval` up to and with the first delay of `maxInterval` ([`Progression`] says how),
//! then `postBackoff` retries at `maxInterval`, and the end. Without `postBackoff` it goes on at `maxInterval` until
//! `quantity` or `ttl` is reached.

mod after;
mod plan;
mod progression;
#[cfg(test)]
mod tests;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

pub use after::parse_retry_after;
pub use plan::{End, Plan, Planned, PlannedThrottle};
pub use progression::Progression;

use crate::duration::HumanDuration;

const HOUR: Duration = Duration::from_secs(3_600);

/// How far jitter moves a delay, to either side.
const SPREAD: f64 = 0.1;

/// When and how often a notification is tried again. [`RetryPolicy::validate`] says whether one makes sense; the
/// other methods never panic, whatever the fields hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "RetryDraft")]
pub struct RetryPolicy {
    /// The most attempts, the first one included.
    pub quantity: u32,
    /// No attempt begins later than this after the first.
    pub ttl: HumanDuration,
    /// The first delay of the backoff, and the delay of `preBackoff`.
    pub interval: HumanDuration,
    /// The longest delay.
    pub max_interval: HumanDuration,
    /// The second delay of the backoff is this many times the first.
    #[serde(serialize_with = "write_ratio")]
    pub ratio: f64,
    /// How the backoff grows.
    pub progression: Progression,
    /// Retries without delay, before all others.
    pub immediate: u32,
    /// Retries at `interval`, before the backoff.
    pub pre_backoff: u32,
    /// Retries at `max_interval` after the backoff; without it, as many as `quantity` and `ttl` allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_backoff: Option<u32>,
}

/// A policy as it is written: everything may be left out, and what is left out stays so, because one default may
/// depend on another value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryDraft {
    /// The most attempts, the first one included.
    #[schemars(range(min = 1), extend("default" = 50))]
    #[serde(skip_serializing_if = "Option::is_none")]
    quantity: Option<u32>,
    /// No attempt begins later than this after the first. Above 0s.
    #[schemars(extend("default" = "72h"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<HumanDuration>,
    /// The first delay of the backoff, and the delay of `preBackoff`. Above 0s.
    #[schemars(extend("default" = "5s"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<HumanDuration>,
    /// The longest delay, at least the interval; 1h, or the interval where that is longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_interval: Option<HumanDuration>,
    /// The second delay of the backoff is this many times the first.
    #[schemars(range(min = 1), extend("default" = 2))]
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "write_given_ratio", default)]
    ratio: Option<f64>,
    /// How the backoff grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    progression: Option<Progression>,
    /// Retries without delay, before all others.
    #[schemars(extend("default" = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    immediate: Option<u32>,
    /// Retries at `interval`, before the backoff.
    #[schemars(extend("default" = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pre_backoff: Option<u32>,
    /// Retries at `maxInterval` after the backoff; without it, as many as `quantity` and `ttl` allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    post_backoff: Option<u32>,
}

impl From<RetryDraft> for RetryPolicy {
    fn from(draft: RetryDraft) -> Self {
        let interval = draft.interval.unwrap_or(HumanDuration(Duration::from_secs(5)));
        Self {
            quantity: draft.quantity.unwrap_or(50),
            ttl: draft.ttl.unwrap_or(HumanDuration(72 * HOUR)),
            interval,
            // Whoever asks for an interval of two hours and no more must not be told that the default is one.
            max_interval: draft.max_interval.unwrap_or(HumanDuration(HOUR).max(interval)),
            ratio: draft.ratio.unwrap_or(2.0),
            progression: draft.progression.unwrap_or_default(),
            immediate: draft.immediate.unwrap_or(0),
            pre_backoff: draft.pre_backoff.unwrap_or(0),
            post_backoff: draft.post_backoff,
        }
    }
}

impl From<RetryPolicy> for RetryDraft {
    fn from(policy: RetryPolicy) -> Self {
        Self {
            quantity: Some(policy.quantity),
            ttl: Some(policy.ttl),
            interval: Some(policy.interval),
            max_interval: Some(policy.max_interval),
            ratio: Some(policy.ratio),
            progression: Some(policy.progression),
            immediate: Some(policy.immediate),
            pre_backoff: Some(policy.pre_backoff),
            post_backoff: policy.post_backoff,
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryDraft::default().into()
    }
}

fn write_given_ratio<S: Serializer>(ratio: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match ratio {
        Some(ratio) => write_ratio(ratio, serializer),
        None => serializer.serialize_none(),
    }
}

/// A whole ratio is shown as it is written: `2`, not `2.0`.
fn write_ratio<S: Serializer>(ratio: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if ratio.fract() == 0.0 && (0.0..1e15).contains(ratio) {
        serializer.serialize_u64(*ratio as u64)
    } else {
        serializer.serialize_f64(*ratio)
    }
}

/// Why a policy was refused. The message names the field and is shown to API users as it is.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RetryError {
    /// No attempt at all.
    #[error("delivery.retry.quantity must be at least 1 (the first attempt counts), got 0")]
    Quantity,
    /// Nothing could ever be retried.
    #[error("delivery.retry.ttl must be longer than 0s; to try once only, set quantity to 1")]
    Ttl,
    /// Retries without a pause.
    #[error("delivery.retry.interval must be longer than 0s; for retries without delay use immediate")]
    Interval,
    /// A longest delay below the first.
    #[error("delivery.retry.maxInterval must be at least the interval ({interval}), got {max_interval}")]
    MaxInterval {
        /// As it was given.
        interval: HumanDuration,
        /// As it was given.
        max_interval: HumanDuration,
    },
    /// Delays that shrink.
    #[error("delivery.retry.ratio must be at least 1, got {ratio}")]
    Ratio {
        /// As it was given.
        ratio: f64,
    },
}

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Try again after this long.
    Retry(Duration),
    /// Don't.
    GiveUp(Reason),
}

/// Which limit ended the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// `quantity`, or the end of `postBackoff`.
    Quantity,
    /// `ttl`.
    Ttl,
}

impl RetryPolicy {
    /// Whether the policy makes sense; the first field that does not is named.
    pub fn validate(&self) -> Result<(), RetryError> {
        let Self { interval, max_interval, ratio, .. } = *self;
        if self.quantity == 0 {
            return Err(RetryError::Quantity);
        }
        if self.ttl.0.is_zero() {
            return Err(RetryError::Ttl);
        }
        if interval.0.is_zero() {
            return Err(RetryError::Interval);
        }
        if max_interval < interval {
            return Err(RetryError::MaxInterval { interval, max_interval });
        }
        if !(ratio.is_finite() && ratio >= 1.0) {
            return Err(RetryError::Ratio { ratio });
        }
        Ok(())
    }

    /// What follows when `attempts_made` attempts failed, the first of them `since_first` ago. `jitter`, from 0 to
    /// below 1, moves the delay to 0.9 to 1.1 of the planned one, so that what failed together does not return
    /// together. A retry that would begin after `ttl` is given up now: waiting would change nothing.
    pub fn next(&self, attempts_made: u32, since_first: Duration, jitter: f64) -> Next {
        self.next_after(attempts_made, since_first, jitter, Duration::ZERO)
    }

    /// The same when the client answered with a `Retry-After`: the delay is at least that, as far as `maxInterval`
    /// allows, and jitter only adds to it.
    pub fn next_after(
        &self,
        attempts_made: u32,
        since_first: Duration,
        jitter: f64,
        retry_after: Duration,
    ) -> Next {
        if attempts_made >= self.attempts() {
            return Next::GiveUp(Reason::Quantity);
        }
        let jitter = if jitter.is_nan() { 0.0 } else { jitter.clamp(0.0, 1.0) };
        let planned = scaled(self.planned(attempts_made), 1.0 - SPREAD + 2.0 * SPREAD * jitter);
        let asked = scaled(retry_after.min(self.max_interval.0), 1.0 + SPREAD * jitter);
        let delay = planned.max(asked);
        if since_first.saturating_add(delay) > self.ttl.0 {
            return Next::GiveUp(Reason::Ttl);
        }
        Next::Retry(delay)
    }

    /// The delay before a retry, without jitter. The first retry is 1; 0 is the first attempt, which waits for
    /// nothing. Never shrinks from one retry to the next.
    pub fn planned(&self, retry: u32) -> Duration {
        let waited = self.immediate.saturating_add(self.pre_backoff);
        if retry <= self.immediate {
            Duration::ZERO
        } else if retry <= waited {
            self.interval.0.min(self.max_interval.0)
        } else {
            self.backoff(retry - waited - 1)
        }
    }

    /// The longest delay that [`Self::next`] and [`Self::next_after`] give. A due time further away than that comes
    /// from a clock that jumped.
    pub fn longest(&self) -> Duration {
        scaled(self.max_interval.0, 1.0 + SPREAD)
    }

    /// When the first `n` attempts are planned, counted from the first one, without jitter and with attempts that take
    /// no time. Fewer when the policy gives up before.
    pub fn simulate(&self, n: usize) -> Vec<Duration> {
        let mut offsets = Vec::new();
        let mut at = Duration::ZERO;
        for retry in 0..self.attempts() {
            at = at.saturating_add(self.planned(retry));
            if offsets.len() == n || at > self.ttl.0 {
                break;
            }
            offsets.push(at);
        }
        offsets
    }

    /// The most attempts that the phases and `quantity` allow.
    fn attempts(&self) -> u32 {
        let Some(post_backoff) = self.post_backoff else { return self.quantity };
        let Some(backoff) = self.backoff_length() else { return self.quantity };
        let phases = [1, self.immediate, self.pre_backoff, backoff, post_backoff];
        phases.into_iter().fold(0, u32::saturating_add).min(self.quantity)
    }

    /// How many delays the backoff has: up to and with the first that is `maxInterval`, which may never come.
    fn backoff_length(&self) -> Option<u32> {
        let max = self.max_interval.0;
        let (mut low, mut high) = (0, self.quantity);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.backoff(middle) < max { low = middle + 1 } else { high = middle }
        }
        (low < self.quantity).then_some(low + 1)
    }

    /// The delay with this index, from 0, in the backoff.
    fn backoff(&self, index: u32) -> Duration {
        let max = self.max_interval.0;
        let grown = nanos(self.interval.0) * self.progression.factor(self.ratio, index);
        if grown.is_nan() || grown >= nanos(max) {
            return max;
        }
        // Floats are coarser than nanoseconds for long durations; neither end may be passed by rounding.
        Duration::from_nanos(grown as u64).max(self.interval.0).min(max)
    }
}

fn nanos(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

/// Saturates at 584 years.
fn scaled(duration: Duration, factor: f64) -> Duration {
    Duration::from_nanos((nanos(duration) * factor) as u64)
}
