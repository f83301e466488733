//! Metrics for a collector: all that `GET /metrics` would show, handed over again and again.

use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::operations::App;

/// Metrics that take longer to put together when the node stops are left out.
const PATIENCE: Duration = Duration::from_secs(1);

impl App {
    /// Hands over metrics for as long as the node runs.
    pub async fn export_metrics(&self) {
        let interval = self.config.telemetry.metrics.interval;
        if self.telemetry.is_none() || interval.is_zero() {
            return std::future::pending().await;
        }
        let mut tick = tokio::time::interval(interval);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        // The first one comes at once, when there is nothing to tell.
        tick.tick().await;
        loop {
            tick.tick().await;
            self.offer_metrics().await;
        }
    }

    /// Sends what is left to a collector; the node stops.
    pub async fn end_telemetry(&self) {
        let Some(telemetry) = &self.telemetry else { return };
        if !self.config.telemetry.metrics.interval.is_zero() {
            let _ = tokio::time::timeout(PATIENCE, self.offer_metrics()).await;
        }
        telemetry.stop().await;
    }

    async fn offer_metrics(&self) {
        match (&self.telemetry, self.metrics().await) {
            (Some(telemetry), Ok(families)) => telemetry.offer(families),
            (None, _) => {}
            // The store says so itself; the next ones may be complete.
            (Some(_), Err(error)) => tracing::debug!(error = %error, "no metrics for the collector"),
        }
    }
}
