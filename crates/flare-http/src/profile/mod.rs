//! In: a running process. Out: what it spends its time on, or who holds its memory, as a flamegraph or for the tools that
//! read pprof's format.
//!
//! Off, it costs nothing: no handler, no timer, no thread exists before a profile is asked for. Who holds memory has to be
//! noted beforehand, which begins with the process where profiles are on.

#![cfg_attr(
    not(all(feature = "cpu-profile", feature = "heap-profile")),
    allow(dead_code, reason = "one kind of profile alone does not need what the other does")
)]

#[cfg(feature = "cpu-profile")]
pub mod cpu;
mod flame;
#[cfg(feature = "heap-profile")]
pub mod heap;
#[cfg(any(test, feature = "heap-profile"))]
mod jeheap;
mod proto;

use tokio::sync::{Semaphore, SemaphorePermit};

pub use flame::svg;
pub use proto::encode;

/// The process has one profiler. When it is taken: the next one is refused, not queued.
static ONE: Semaphore = Semaphore::const_new(1);

/// The right to take a profile, until it is dropped; nothing while another one is taken, of whichever kind.
fn alone() -> Option<SemaphorePermit<'static>> {
    ONE.try_acquire().ok()
}

/// What was seen on the stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What is counted.
    pub unit: Unit,
    /// When it began, in nanoseconds since 1970.
    pub began_nanos: i64,
    /// How long it took, in nanoseconds.
    pub took_nanos: i64,
    /// Each stack once.
    pub stacks: Vec<Stack>,
}

/// What is counted, and how far samples are apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Samples, and nanoseconds on a processor.
    Cpu {
        /// Nanoseconds between two samples.
        period: u64,
    },
    /// Pieces of memory that are held, and their bytes.
    Heap {
        /// Bytes between two samples, on average.
        period: u64,
    },
}

/// A stack, and how much of the whole is its.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stack {
    /// The name of the thread.
    pub thread: String,
    /// Functions, the outermost first.
    pub frames: Vec<String>,
    /// How often: samples, or pieces of memory.
    pub count: u64,
    /// How much: nanoseconds, or bytes.
    pub amount: u64,
}
