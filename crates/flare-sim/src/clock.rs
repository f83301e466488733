//! The time of a simulation: tokio's paused clock comes in, a [`Clock`] for each life of a node goes out. Timers and
//! durations follow the paused clock; the wall clock is that plus an offset, which the schedule sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use flare_core::door::Clock;
use flare_model::time::Timestamp;
use tokio::time::Instant;

/// When a simulation begins, on its wall clock: 2026-01-02T03:04:05Z.
const DAWN: i64 = 1_767_323_045_000;

/// The time of one simulation. Clones tell the same.
#[derive(Clone)]
pub struct Time {
    began: Instant,
    offset: Arc<AtomicI64>,
}

impl Time {
    /// Begins now. Within a runtime whose clock is paused.
    pub fn begin() -> Time {
        Time { began: now(), offset: Arc::default() }
    }

    /// How long the simulation has lasted.
    pub fn passed(&self) -> Duration {
        now() - self.began
    }

    /// Sets the wall clock to so many milliseconds from where it would be.
    pub fn set_offset(&self, millis: i64) {
        self.offset.store(millis, Ordering::Relaxed);
    }

    /// The clock of a process that starts now.
    pub fn of_process(&self) -> Arc<dyn Clock> {
        Arc::new(Process { time: self.clone(), started: now() })
    }
}

struct Process {
    time: Time,
    started: Instant,
}

impl Clock for Process {
    fn now(&self) -> Timestamp {
        let passed = self.time.passed().as_millis() as i64;
        Timestamp::from_millis(DAWN + passed + self.time.offset.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        now() - self.started
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the door of the simulation")]
fn now() -> Instant {
    Instant::now()
}
