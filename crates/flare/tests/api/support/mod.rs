//! What the suites share: a process, a client of the API, clients that are told, and waiting for things.

mod api;
mod certificates;
mod collector;
mod flare;
#[path = "../../../../flare-postgresql/tests/common/server.rs"]
pub mod postgresql;
mod python;
mod receiver;
mod shim;
mod story;
mod tail;

use std::future::Future;
use std::io::Write as _;
use std::time::{Duration, Instant};

pub use api::{Answer, Api};
pub use certificates::Certificates;
pub use collector::Collector;
pub use flare::{Flare, OPERATOR, Setup, store_is_durable};
pub use python::{installed as installed_python, open_metrics, read_events, schemathesis, validate, verify};
pub use receiver::{Gate, Receiver, Reply, Request};
pub use shim::Shim;
pub use story::{Story, document_url, minimal_resource};
pub use tail::Tail;

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

/// Something cannot be tested on this machine: a failure in CI, elsewhere a line that `cargo xtask test` closes with.
pub fn left_out(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "in CI nothing may be left out: {why}");
    eprintln!("LEFT OUT: {why}");
    if let Some(list) = std::env::var_os("FLARE_TEST_LEFT_OUT") {
        let list = std::fs::OpenOptions::new().create(true).append(true).open(list);
        // One write each, so that lines of tests that run side by side do not mix.
        let noted = list.and_then(|mut list| list.write_all(format!("{why}\n").as_bytes()));
        noted.expect("what was left out is noted");
    }
}
