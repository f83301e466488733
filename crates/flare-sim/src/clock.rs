//! The time of a simulation: tokio's paused clock comes in, a [`Clock`] for each life of a node goes out. Timers and
//! durations follow the paused clock; the wall clock of each machine is that plus an offset, which the schedule sets.

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
}

/// The clock of one machine, whichever processes it runs. Clones are the same clock.
#[derive(Clone)]
pub struct Machine {
    time: Time,
    /// The wall clock is so many milliseconds from where it would be.
    offset: Arc<AtomicI64>,
}

impl Time {
    /// Begins now. Within a runtime whose clock is paused.
    pub fn begin() -> Time {
        Time { began: now() }
    }

    /// How long the simulation has lasted.
    pub fn passed(&self) -> Duration {
        now() - self.began
    }

    /// The clock of a machine.
    pub fn of_machine(&self) -> Machine {
        Machine { time: self.clone(), offset: Arc::default() }
    }
}

impl Machine {
    /// Sets the wall clock to so many milliseconds from where it would be.
    pub fn set_offset(&self, millis: i64) {
        self.offset.store(millis, Ordering::Relaxed);
    }

    /// The clock of a process that starts now.
    pub fn of_process(&self) -> Arc<dyn Clock> {
        Arc::new(Process { machine: self.clone(), started: now() })
    }
}

struct Process {
    machine: Machine,
    started: Instant,
}

impl Clock for Process {
    fn now(&self) -> Timestamp {
        let passed = self.machine.time.passed().as_millis() as i64;
        Timestamp::from_millis(DAWN + passed + self.machine.offset.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        now() - self.started
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the door of the simulation")]
fn now() -> Instant {
    Instant::now()
}
