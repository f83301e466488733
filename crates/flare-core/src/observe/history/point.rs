//! Two samples come in, what happened between them goes out: rates, percentiles, and how everything stood.

use flare_model::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::Sample;
use crate::observe::count::Distribution;
use crate::observe::gauges::Gauges;

/// What happened in a span of time. Rates are per second.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// When the span ended.
    pub at: Timestamp,
    /// How long it was.
    pub seconds: f64,
    /// Documents that changed something.
    pub accepted: f64,
    /// Documents that changed nothing: unchanged, stale, absent.
    pub unchanged: f64,
    /// Documents refused.
    pub refused: f64,
    /// Notifications that arrived, sent or taken away by the client itself.
    pub delivered: f64,
    /// Notifications that clients dropped on purpose.
    pub discarded: f64,
    /// Attempts that failed, and leases that came back.
    pub failed: f64,
    /// Notifications given up.
    pub given_up: f64,
    /// From when a change was accepted until the client had it, in seconds.
    pub latency: Option<Percentiles>,
    /// How long requests to clients took, in seconds.
    pub attempt: Option<Percentiles>,
    /// How long origins waited for the store, in seconds.
    pub commit: Option<Percentiles>,
    /// How everything stood: the worst of the span.
    pub gauges: Gauges,
}

/// Times in seconds: one half, 95 and 99 of a hundred were faster.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Percentiles {
    /// One half.
    pub p50: f64,
    /// 95 of a hundred.
    pub p95: f64,
    /// 99 of a hundred.
    pub p99: f64,
}

impl Percentiles {
    /// Of times in microseconds; nothing where there are none.
    pub fn of(times: &Distribution) -> Option<Percentiles> {
        let seconds = |part| times.quantile(part).map(|micros| micros / 1e6);
        Some(Percentiles { p50: seconds(0.5)?, p95: seconds(0.95)?, p99: seconds(0.99)? })
    }
}

impl Point {
    /// What happened between two samples, with how everything stood meanwhile. Its time is for the reader to set.
    pub(super) fn between(since: &Sample, until: &Sample, gauges: Gauges) -> Point {
        let seconds = until.at.saturating_sub(since.at).as_secs_f64();
        let (then, now) = (&since.totals, &until.totals);
        let rate = |then: u64, now: u64| now.saturating_sub(then) as f64 / seconds.max(f64::MIN_POSITIVE);
        Point {
            at: Timestamp::from_millis(0),
            seconds,
            accepted: rate(then.changes(), now.changes()),
            unchanged: rate(then.unchanged(), now.unchanged()),
            refused: rate(then.all_refused(), now.all_refused()),
            delivered: rate(then.delivered(), now.delivered()),
            discarded: rate(then.discarded(), now.discarded()),
            failed: rate(then.failed(), now.failed()),
            given_up: rate(then.given_up, now.given_up),
            latency: Percentiles::of(&now.latency.since(&then.latency)),
            attempt: Percentiles::of(&now.attempt.since(&then.attempt)),
            commit: Percentiles::of(&now.commit.since(&then.commit)),
            gauges,
        }
    }
}
