//! How the services are spoken to: an operation and its JSON come in; a signed request goes out, and what became of it comes
//! back. docs/adr/0021-aws-by-hand.md says why this is not the vendor's SDK.

pub mod address;
pub mod client;
pub mod credentials;
pub mod environment;
pub mod failure;
mod fetching;
pub mod host;
mod line;
mod signature;

pub use client::{Client, Service};
pub use failure::Failure;
pub use signature::hash;
