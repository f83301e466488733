//! What a passive subscription keeps beside its feeds.

pub mod message;
pub mod token;
