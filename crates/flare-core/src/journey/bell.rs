//! The bell of a delivery thread. In: lanes that moved, and what the thread stood in line for and may have now. Out: all of
//! it at once, to the thread when it listens.

use flare_model::ids::{LaneId, SubscriptionNumber};
use flare_model::sharing::{Class, HostNumber};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::notification::host::Destination;

/// How a delivery thread hears that lanes have moved, or that it may open something.
#[derive(Default)]
pub struct Bell {
    rung: Mutex<Rung>,
    notify: Notify,
}

/// Why a bell was rung.
#[derive(Default)]
pub struct Rung {
    /// Lanes that moved. Bound: those that have a feed parked on that thread; each is in it once.
    pub lanes: Vec<LaneId>,
    /// What the thread is called for. Bound: what threads stand in line for, each once for each thread.
    pub calls: Vec<Call>,
}

impl Bell {
    /// A lane has moved that a feed of the thread is parked at.
    pub fn ring(&self, lane: LaneId) {
        self.rung.lock().lanes.push(lane);
        self.notify.notify_one();
    }

    /// Calls the thread.
    pub fn call(&self, call: Call) {
        self.rung.lock().calls.push(call);
        self.notify.notify_one();
    }

    /// Waits for a ring and takes what there is.
    pub async fn heard(&self) -> Rung {
        loop {
            let rung = std::mem::take(&mut *self.rung.lock());
            if !rung.lanes.is_empty() || !rung.calls.is_empty() {
                return rung;
            }
            self.notify.notified().await;
        }
    }
}

/// What a thread is called for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// It may open a connection to this host.
    Host(Destination),
    /// It may open a connection to a host of its own that has waited.
    Connection,
    /// It may begin a request to this host for a client of this class; it counts as begun.
    Share(HostNumber, Class),
    /// It may begin an attempt of this subscription.
    Concurrency(SubscriptionNumber),
    /// Another thread waits for a connection, to this host or to any: one that is idle is to be closed.
    Idle(Option<Destination>),
}
