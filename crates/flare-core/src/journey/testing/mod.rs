//! For tests: delivery threads that a test drives by hand, and what must hold on them in whichever order things happen.

pub mod any_order;
pub mod fixture;
pub mod footprint;
pub mod sinks;
pub mod wakings;
pub mod world;
