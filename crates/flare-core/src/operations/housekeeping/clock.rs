//! The clock of the machine, watched: when it was set, delivery threads are told.

use std::time::Duration;

use crate::operations::App;

/// How often it is looked at. What is due or old meanwhile is so by the monotonic clock.
const LOOK: Duration = Duration::from_secs(1);

impl App {
    /// Watches the wall clock until the node stops.
    pub async fn watch_clock(&self) {
        loop {
            let offset = self.steps.look(&*self.clock);
            self.journey.clock_moved(offset).await;
            tokio::time::sleep(LOOK).await;
        }
    }
}
