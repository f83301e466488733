//! What Flare tells of itself: attempts, explanations, numbers, traces, profiles.

pub mod attempts;
pub mod boards;
pub mod drift;
pub mod explain;
mod health;
pub mod metrics;
pub mod plots;
#[cfg(any(feature = "cpu-profile", feature = "heap-profile"))]
pub mod pprof;
pub mod profiles;
pub mod simulate;
pub mod telemetry;
pub mod truth;
pub mod verdicts;
