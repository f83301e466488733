//! The behaviours of sources, by area.

pub mod positions;
pub mod reading;
pub mod restarts;
pub mod settling;
pub mod trouble;
