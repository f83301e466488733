//! In: how each export went. Out: one line in the log when a collector fails, and one when it takes things again.

use std::sync::atomic::Ordering;

use super::transport::Signal;
use crate::telemetry::queue::Tally;

/// Whether the collector takes nothing at present.
#[derive(Default)]
pub struct Outage {
    /// How many spans had been dropped when it began.
    since: Option<u64>,
    /// What was said of things that the collector did not take; the same is not said twice.
    told: String,
}

impl Outage {
    /// An export failed.
    pub fn begins(&mut self, tally: &Tally, why: &str) {
        *tally.failing.lock() = Some(why.to_owned());
        if self.since.is_none() {
            self.since = Some(tally.dropped.load(Ordering::Relaxed));
            tracing::warn!(error = why, "the telemetry collector takes nothing; trying on, and not logging it again");
        }
    }

    /// An export went through.
    pub fn over(&mut self, tally: &Tally) {
        let Some(before) = self.since.take() else { return };
        *tally.failing.lock() = None;
        let dropped = tally.dropped.load(Ordering::Relaxed) - before;
        tracing::info!(dropped, "the telemetry collector takes spans again");
    }

    /// A collector took a message and not all of it.
    pub fn partial(&mut self, signal: Signal, why: &str) {
        if self.told != why {
            tracing::warn!(signal = ?signal, reason = why, "the telemetry collector did not take everything");
            why.clone_into(&mut self.told);
        }
    }
}
