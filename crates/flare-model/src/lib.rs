//! The pure part of Flare: what its words mean and how its decisions are made. No I/O, no clock, no chance;
//! whatever time or randomness a rule needs is handed to it.

pub mod access;
pub mod bridge;
pub mod change;
pub mod cluster;
pub mod consumer;
pub mod document;
pub mod duration;
pub mod explain;
pub mod feed;
pub mod filter;
pub mod health;
pub mod ids;
pub mod invalid;
pub mod judge;
pub mod layout;
pub mod pace;
pub mod patch;
pub mod pattern;
#[cfg(feature = "planted")]
pub mod planted;
pub mod producer;
pub mod resource;
pub mod retry;
pub mod revision;
pub mod router;
pub mod schema;
pub mod sharing;
pub mod sorted;
pub mod subscription;
pub mod template;
pub mod time;
pub mod url;
