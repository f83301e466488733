//! Flare with every engine of sources and targets, through its real binary, beside real brokers and emulators: a few stories, each
//! told of every one of them. `cargo xtask test` builds it with the feature `full`.
//!
//! What engines have to show by themselves is in their own tests, whose servers are used here, too.

#![allow(
    clippy::disallowed_methods,
    reason = "tests measure the machine's own time, and own their tasks by their runtime"
)]

#[path = "../../../flare-aws/tests/aws/emulator.rs"]
#[allow(dead_code, reason = "the tests of the engine use all of it")]
mod emulator;
#[path = "../api/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the tests of the API use all of it")]
mod support;

mod brokers;
mod nats;
mod rabbitmq;
mod world;
