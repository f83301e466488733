//! Samples: once a second, what was counted and how everything stands goes into the history.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::App;
use crate::observe::{Gauges, SAMPLE, Sample};

/// A census takes at most one part in so many of a delivery thread's time: with very many subscriptions it is taken less
/// often, and the samples between repeat it.
const SHARE: u32 = 1000;

/// With however many, it is taken so often.
const LONGEST: Duration = Duration::from_secs(60);

/// A census that takes longer than this is in the next sample: busy threads do not hold up the rest.
const PATIENCE: Duration = Duration::from_millis(200);

impl App {
    /// Samples until the node stops.
    pub async fn sample(&self) {
        let mut tick = tokio::time::interval(SAMPLE);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (mut gauges, mut census_at) = (Gauges::default(), Duration::ZERO);
        let mut next_census = Duration::ZERO;
        let mut census = None;
        loop {
            tick.tick().await;
            if census.is_none() && self.clock.monotonic() >= next_census {
                census = Some(Box::pin(self.journey.census()));
            }
            if let Some(under_way) = &mut census
                && let Ok(taken) = tokio::time::timeout(PATIENCE, under_way).await
            {
                census = None;
                // Of a node that is stopping the last one stands.
                if let Some(taken) = taken {
                    (gauges, census_at) = (taken.gauges, self.clock.monotonic());
                    next_census =
                        census_at + taken.took.saturating_mul(SHARE).min(LONGEST).saturating_sub(SAMPLE / 2);
                }
            }
            let (at, totals) = (self.clock.monotonic(), self.journey.observe().counts().read());
            self.history.note(Sample { at, totals, gauges: gauges.clone(), census_at });
        }
    }
}
