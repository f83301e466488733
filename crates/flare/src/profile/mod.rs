//! In: a running process. Out: what it spends its time on, as a flamegraph or for the tools that read pprof's format.
//!
//! Off, it costs nothing: no handler, no timer, no thread exists before a profile is asked for.

pub mod cpu;
mod flame;
mod proto;

pub use flame::svg;
pub use proto::encode;

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

/// What is counted, and how much one sample stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Time on a processor: each sample stands for so many nanoseconds.
    Cpu {
        /// Nanoseconds between two samples.
        period: i64,
    },
}

/// A stack and how often it was seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stack {
    /// The name of the thread.
    pub thread: String,
    /// Functions, the outermost first.
    pub frames: Vec<String>,
    /// How often.
    pub samples: u64,
}

impl Profile {
    /// How many samples there are.
    pub fn samples(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.samples).sum()
    }
}
