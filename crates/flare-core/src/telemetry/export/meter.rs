//! In: metrics as they were last looked at. Out: the same, sent once: the next ones say all that these would have said.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::about::About;
use super::metrics::{self, Period};
use super::way::Way;
use crate::telemetry::latest::Latest;

/// What sends metrics.
pub struct Meter {
    /// Who sends.
    pub about: Arc<About>,
    /// Where to.
    pub way: Way,
    /// The metrics.
    pub latest: Arc<Latest>,
    /// The node stops.
    pub stop: CancellationToken,
}

impl Meter {
    /// Sends until the node stops, and then what is left.
    pub async fn run(mut self) {
        while self.stop.run_until_cancelled(self.latest.there()).await.is_some() {
            self.send().await;
        }
        self.send().await;
    }

    async fn send(&mut self) {
        let Some(families) = self.latest.take() else { return };
        let (start, time) = self.way.times();
        let [start, time] = [start, time].map(|nanos| u64::try_from(nanos).unwrap_or(0));
        let message = metrics::encode(&self.about, &families, Period { start, time }).into();
        // How it went is counted and logged by then.
        let _ = self.way.send(&message, 0).await;
    }
}
