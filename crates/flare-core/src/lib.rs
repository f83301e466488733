//! What a node does, whoever asks for it: the configuration, the [`journey`] of a change from its commit to the last
//! client, the [`operations`] on what is kept, and what is [observed](observe) on the way.
//!
//! It runs on any engine of `flare-provider` and is served from outside: what is absent here are engines, the HTTP API,
//! pages, and the command line. The crate `flare` puts them together.

pub mod access;
pub mod bridges;
pub mod cluster;
pub mod config;
pub mod consuming;
pub mod door;
pub mod epoch;
pub mod journey;
pub mod network;
pub mod notification;
pub mod objects;
pub mod observe;
pub mod operations;
pub mod protobuf;
pub mod registry;
pub mod sealing;
pub mod steps;
pub mod telemetry;
pub mod tls;
pub mod trace;
pub mod vault;
pub mod version;
