//! Between the API and whoever sends: metrics as they were last looked at.

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::observe::metrics::Family;

/// The newest metrics. Bound: one set of them. When full: the newer one takes its place, and says all that it said.
#[derive(Default)]
pub struct Latest {
    families: Mutex<Option<Vec<Family>>>,
    there: Notify,
}

impl Latest {
    /// Leaves metrics to be sent.
    pub fn put(&self, families: Vec<Family>) {
        *self.families.lock() = Some(families);
        self.there.notify_one();
    }

    /// What is to be sent, once.
    pub fn take(&self) -> Option<Vec<Family>> {
        self.families.lock().take()
    }

    /// Waits until there is something.
    pub async fn there(&self) {
        while self.families.lock().is_none() {
            self.there.notified().await;
        }
    }
}
