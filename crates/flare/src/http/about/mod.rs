//! What Flare says of itself.

pub mod health;
pub mod status;
pub mod version;
