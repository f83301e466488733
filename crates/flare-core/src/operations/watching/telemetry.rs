//! Metrics for a collector: all that `GET /metrics` would show, handed over again and again.

use std::time::Duration;

use crate::operations::{App, Done};

/// Metrics that take longer to put together when the node stops are left out.
const PATIENCE: Duration = Duration::from_secs(1);

impl App {
    /// Sends what is left to a collector; the node stops.
    pub async fn end_telemetry(&self) {
        let Some(telemetry) = &self.telemetry else { return };
        if !self.config.telemetry.metrics.interval.is_zero() {
            let _ = tokio::time::timeout(PATIENCE, self.offer_metrics()).await;
        }
        telemetry.stop().await;
    }

    /// Hands over metrics as they are now.
    pub(in crate::operations) async fn offer_metrics(&self) -> Done<()> {
        if let Some(telemetry) = &self.telemetry {
            telemetry.offer(self.metrics().await?);
        }
        Ok(())
    }
}
