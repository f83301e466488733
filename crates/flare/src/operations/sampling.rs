//! Samples: once a second, what was counted and how everything stands goes into the history.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::App;
use crate::observe::{Gauges, SAMPLE, Sample};

/// A census takes at most one part in so many of the time: with very many subscriptions it is taken less often, and the
/// samples between repeat it.
const SHARE: u32 = 200;

/// A census that takes longer than this is waited for in the next sample.
const PATIENCE: Duration = Duration::from_millis(500);

impl App {
    /// Samples until the node stops.
    pub async fn sample(&self) {
        let mut tick = tokio::time::interval(SAMPLE);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (mut gauges, mut next_census) = (Gauges::default(), Duration::ZERO);
        loop {
            tick.tick().await;
            let began = self.clock.monotonic();
            if began >= next_census
                && let Ok(census) = tokio::time::timeout(PATIENCE, self.journey.census()).await
            {
                // Of a node that is stopping the last one stands.
                gauges = census.unwrap_or(gauges);
                let at = self.clock.monotonic();
                next_census = began + at.saturating_sub(began).saturating_mul(SHARE).min(60 * SAMPLE);
            }
            let totals = self.journey.observe().counts().read();
            self.history.note(Sample { at: self.clock.monotonic(), totals, gauges: gauges.clone() });
        }
    }
}
