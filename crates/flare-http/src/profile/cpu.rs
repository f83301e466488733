//! In: for how long, and how often a second. Out: what the threads of this process were doing on a processor.
//!
//! The system sends a signal for every so much processor time that the process uses; the handler notes the stack of
//! the thread it lands on. What is absent: time that a thread waits; and what happens inside the C library (system
//! calls, memory being copied), because walking a stack from there is not safe in a signal handler.

use std::collections::BTreeMap;

use flare_core::door::Clock;
use pprof::{ProfilerGuard, ProfilerGuardBuilder, Report};
use tokio::sync::SemaphorePermit;

use super::{Profile, Stack, Unit, alone};

/// Objects that a stack is not walked from: their locks may be held at that moment.
const UNSAFE_TO_WALK: [&str; 4] = ["libc", "libgcc", "pthread", "vdso"];

/// A profile that is being taken. Dropping it ends the taking.
pub struct Sampling {
    guard: ProfilerGuard<'static>,
    rate: u32,
    began_nanos: i64,
    began: std::time::Duration,
    _one: SemaphorePermit<'static>,
}

/// Why no profile can be taken.
#[derive(Debug, thiserror::Error)]
pub enum NoCpuProfile {
    /// One is being taken.
    #[error("a profile is being taken already")]
    Busy,
    /// The system does not let us.
    #[error("the profiler cannot start")]
    Failed(#[source] pprof::Error),
}

impl Sampling {
    /// Begins, with so many samples per second of processor time.
    pub fn begin(rate: u32, clock: &dyn Clock) -> Result<Sampling, NoCpuProfile> {
        let one = alone().ok_or(NoCpuProfile::Busy)?;
        let frequency = i32::try_from(rate).unwrap_or(i32::MAX);
        let builder = ProfilerGuardBuilder::default().frequency(frequency).blocklist(&UNSAFE_TO_WALK);
        let guard = builder.build().map_err(NoCpuProfile::Failed)?;
        let began_nanos = clock.now().millis().saturating_mul(1_000_000);
        Ok(Sampling { guard, rate, began_nanos, began: clock.monotonic(), _one: one })
    }

    /// Ends, and finds the names of what was seen. That takes a while: not for a thread that serves requests.
    pub fn end(self, clock: &dyn Clock) -> Result<Profile, NoCpuProfile> {
        let took = clock.monotonic().saturating_sub(self.began);
        let report = self.guard.report().build().map_err(NoCpuProfile::Failed)?;
        let period = 1_000_000_000 / u64::from(self.rate.max(1));
        Ok(Profile {
            unit: Unit::Cpu { period },
            began_nanos: self.began_nanos,
            took_nanos: i64::try_from(took.as_nanos()).unwrap_or(i64::MAX),
            stacks: stacks(&report, period),
        })
    }
}

/// The same stack on the same thread, once.
fn stacks(report: &Report, period: u64) -> Vec<Stack> {
    let mut counts: BTreeMap<(String, Vec<String>), u64> = BTreeMap::new();
    for (seen, count) in &report.data {
        // Inlined functions share an address; of both, the innermost comes first.
        let innermost_first = seen.frames.iter().flatten().map(|symbol| symbol.name());
        let mut frames: Vec<String> = innermost_first.collect();
        frames.reverse();
        *counts.entry((seen.thread_name_or_id(), frames)).or_default() += u64::try_from(*count).unwrap_or(0);
    }
    let stack = |((thread, frames), count): (_, u64)| Stack {
        thread,
        frames,
        count,
        amount: count.saturating_mul(period),
    };
    counts.into_iter().map(stack).collect()
}
