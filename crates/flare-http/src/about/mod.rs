//! What Flare says of itself.

pub mod health;
pub mod metrics;
pub mod status;
pub mod version;
