//! Who gets in, and what gets out: browsers that are sent by others, crowds, destinations, files.

pub mod access;
pub mod browsers;
pub mod credentials;
pub mod crowds;
pub mod destinations;
pub mod files;
pub mod keeping;
pub mod limits;
pub mod outgoing;
pub mod rebinding;
pub mod threats;
pub mod tls;
