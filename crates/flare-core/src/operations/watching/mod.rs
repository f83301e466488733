//! How everything stands, put together for people and for their tools. Nothing here changes anything.

pub mod metrics;
pub mod overview;
pub mod sampling;
pub mod telemetry;
pub mod trouble;
