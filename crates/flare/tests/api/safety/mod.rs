//! Who gets in, and what gets out: browsers that are sent by others, crowds, destinations, files.

pub mod browsers;
pub mod destinations;
pub mod files;
