//! Samples: again and again, what was counted and how everything stands goes into the history.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::observe::{Gauges, Sample};
use crate::operations::App;

/// A census takes at most one part in so many of a delivery thread's time: with very many subscriptions it is taken less
/// often, and the samples between repeat it.
const SHARE: u32 = 1000;

/// The same while nothing happens, and so hardly anything changes: an idle node is idle.
const SHARE_AT_REST: u32 = 20 * SHARE;

/// With however many, it is taken so often.
const LONGEST: Duration = Duration::from_secs(60);

/// A census that takes longer than this is in the next sample: busy threads do not hold up the rest.
const PATIENCE: Duration = Duration::from_millis(200);

impl App {
    /// Samples until the node stops.
    pub(in crate::operations) async fn sample(self: Arc<App>, step: Duration) {
        let mut tick = tokio::time::interval(step);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (mut gauges, mut census_at, mut took) = (Gauges::default(), Duration::ZERO, Duration::ZERO);
        // What had been counted when the last census began.
        let mut counted = None;
        let mut census = None;
        loop {
            tick.tick().await;
            // What fails now succeeds later; until then the census has bounds.
            let _ = self.count_lanes().await;
            if census.is_none() {
                let now = self.journey.observe().counts().read().events();
                let share = if counted == Some(now) { SHARE_AT_REST } else { SHARE };
                let rest = took.saturating_mul(share).min(LONGEST).saturating_sub(step / 2);
                if counted.is_none() || self.clock.monotonic() >= census_at + rest {
                    counted = Some(now);
                    census = Some(Box::pin(self.journey.census()));
                }
            }
            if let Some(under_way) = &mut census
                && let Ok(taken) = tokio::time::timeout(PATIENCE, under_way).await
            {
                census = None;
                // Of a node that is stopping the last one stands.
                if let Some(taken) = taken {
                    self.trouble.found(taken.troubled);
                    (gauges, census_at, took) = (taken.gauges, self.clock.monotonic(), taken.took);
                }
            }
            let (at, totals) = (self.clock.monotonic(), self.journey.observe().counts().read());
            self.history.note(Sample { at, totals, gauges: gauges.clone(), census_at });
        }
    }
}
