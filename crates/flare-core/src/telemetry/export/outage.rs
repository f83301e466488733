//! In: how each export of a signal went. Out: one line in the log when a collector fails, and one when it takes things
//! again.

use std::sync::atomic::Ordering;

use super::transport::Signal;
use crate::telemetry::queue::Tally;

/// Whether the collector takes nothing of a signal at present.
pub struct Outage {
    signal: Signal,
    /// How many spans had been dropped when it began.
    since: Option<u64>,
    /// What was said of things that the collector did not take; the same is not said twice.
    told: String,
}

impl Outage {
    /// Nothing has failed yet.
    pub fn of(signal: Signal) -> Outage {
        Outage { signal, since: None, told: String::new() }
    }

    /// An export failed.
    pub fn begins(&mut self, tally: &Tally, why: &str) {
        *tally.failing[self.signal as usize].lock() = Some(why.to_owned());
        if self.since.is_none() {
            self.since = Some(tally.dropped.load(Ordering::Relaxed));
            tracing::warn!(
                signal = self.signal.name(),
                error = why,
                "the telemetry collector takes nothing; trying on, and not logging it again"
            );
        }
    }

    /// An export went through.
    pub fn over(&mut self, tally: &Tally) {
        let Some(before) = self.since.take() else { return };
        *tally.failing[self.signal as usize].lock() = None;
        let spans_dropped = tally.dropped.load(Ordering::Relaxed) - before;
        tracing::info!(
            signal = self.signal.name(),
            spans_dropped,
            "the telemetry collector takes things again"
        );
    }

    /// A collector took a message and not all of it.
    pub fn partial(&mut self, why: &str) {
        if self.told != why {
            let signal = self.signal.name();
            tracing::warn!(signal, reason = why, "the telemetry collector did not take everything");
            why.clone_into(&mut self.told);
        }
    }
}
