//! What the suites share: a process, a client of the API, clients that are told, and waiting for things.

mod api;
mod certificates;
mod collector;
mod flare;
mod python;
mod receiver;
mod story;

use std::future::Future;
use std::time::{Duration, Instant};

pub use api::{Answer, Api};
pub use certificates::Certificates;
pub use collector::Collector;
pub use flare::{Flare, Setup, store_is_durable};
pub use python::{open_metrics, read_events, schemathesis, validate, verify};
pub use receiver::{Gate, Receiver, Reply, Request};
pub use story::{Story, document_url, minimal_resource};

/// No wait of these tests is longer: two cores may be shared with a build.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often something is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until `look` finds something.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until something holds.
pub async fn until_true(what: &str, mut holds: impl FnMut() -> bool) {
    until(what, || std::future::ready(holds().then_some(()))).await;
}

/// Looks at something for a while and insists that it holds all the time: for what must not happen.
pub async fn throughout(time: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        assert!(holds(), "no longer: {what}");
        tokio::time::sleep(LOOK).await;
    }
}
