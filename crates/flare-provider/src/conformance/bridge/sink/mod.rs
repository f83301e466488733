//! The behaviours of sinks, by area.

pub mod restarts;
pub mod sending;
pub mod trouble;
