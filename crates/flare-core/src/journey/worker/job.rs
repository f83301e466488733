//! What a courier takes from a delivery thread, and how an idle one is called.

use std::cell::Cell;

use flare_model::feed::Verdict;
use flare_model::judge::too_old;
use flare_model::sharing::{Age, Class};
use flare_model::time::Timestamp;
use tokio::sync::Notify;

use crate::journey::worker::subscribers::Place;
use crate::notification::Notification;

/// One attempt, where it came from, and where it goes.
pub struct Job {
    /// Where the subscription is on its thread.
    pub place: Place,
    /// The lane.
    pub lane: u8,
    /// Under which the lane was open when it was taken.
    pub epoch: u64,
    /// What to tell.
    pub notification: Notification,
    /// Where it goes.
    pub host: usize,
    /// How far the wall clock was ahead when it was taken, see [`Worker::clock_moved`](crate::journey::worker::Worker::clock_moved).
    pub offset: i64,
    /// As which class it is counted among those that share the host's connections; a quick one is not.
    pub share: Option<Class>,
    /// How old it has become.
    pub age: Option<Age>,
    /// Whether it is to find out whether the host answers.
    pub probe: bool,
    /// Whether it is part of a delivery on request.
    pub driven: bool,
}

impl Job {
    /// What becomes of it if it has become too old while it waited; few have an age at which they do.
    #[inline]
    pub fn too_old(&self, now: impl FnOnce() -> Timestamp) -> Option<Verdict> {
        let Notification { compiled, attempt, change, .. } = &self.notification;
        compiled.spec.ttl?;
        too_old(&compiled.spec, attempt, change.document.updated_at, now())
    }
}

/// What is counted of an attempt that is open.
pub struct OpenAttempt {
    /// Whose it is.
    pub place: Place,
    /// Where it goes.
    pub host: usize,
    /// As which class it is counted.
    pub share: Option<Class>,
    /// How old it has become.
    pub age: Option<Age>,
}

/// How an idle courier is called.
#[derive(Default)]
pub struct Summons {
    notify: Notify,
    dismissed: Cell<bool>,
}

impl Summons {
    /// There is work.
    pub fn wake(&self) {
        self.notify.notify_one();
    }

    /// The connection is wanted elsewhere.
    pub fn dismiss(&self) {
        self.dismissed.set(true);
        self.notify.notify_one();
    }

    /// Waits to be called. A call is kept until then.
    pub async fn called(&self) {
        self.notify.notified().await;
    }

    /// Whether the connection is wanted elsewhere.
    pub fn is_dismissed(&self) -> bool {
        self.dismissed.get()
    }
}
