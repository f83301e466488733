//! What people do about the delivery of one subscription: attempts and dead letters looked at, replays, tests, plans of
//! retries, and clients that fetch for themselves.

pub mod attempts;
pub mod dead_letters;
pub mod groups;
pub mod leases;
pub mod passive;
pub mod replayed;
pub mod replays;
pub mod retries;
pub mod settle;
pub mod trials;
