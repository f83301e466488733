//! The clock of the machine, watched: when it was set, delivery threads are told.

use std::sync::Arc;
use std::time::Duration;

use crate::operations::App;

impl App {
    /// Watches the wall clock until the node stops.
    pub(in crate::operations) async fn watch_clock(self: Arc<App>, interval: Duration) {
        loop {
            let offset = self.steps.look(&*self.clock);
            self.journey.clock_moved(offset).await;
            tokio::time::sleep(interval).await;
        }
    }
}
