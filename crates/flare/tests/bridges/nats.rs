//! NATS, as the tests of its engine start, fill and read it.

#![allow(dead_code, reason = "the tests of the engine use all of it")]

#[path = "../../../flare-nats/tests/nats/outside.rs"]
pub mod outside;
#[path = "../../../flare-nats/tests/nats/server.rs"]
pub mod server;
