//! What clients are told: by which subscription, in which shape and order, signed how, and once more.

pub mod content;
pub mod deleting;
pub mod delivery;
pub mod events;
pub mod filters;
pub mod history;
pub mod https;
pub mod order;
pub mod patches;
pub mod read_alike;
pub mod replays;
pub mod rotation;
pub mod shards;
pub mod signatures;
pub mod subscriptions;
pub mod sweeps;
pub mod trials;
