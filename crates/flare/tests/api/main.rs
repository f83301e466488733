//! Flare through its real binary, over real HTTP: every rule of the API, and what clients, origins, disks, clocks and
//! kill -9 can do to it. One program, so that it is linked once; one module for each thing shown.
//!
//! The engine is the embedded one; FLARE_TEST_STORE=memory runs what does not need a disk on the other.

#![allow(
    clippy::disallowed_methods,
    reason = "tests measure the machine's own time, and own their tasks by their runtime"
)]

mod support;

mod bridge;
mod cli;
mod client;
mod cluster;
mod insight;
mod openapi;
mod origin;
mod passive;
mod safety;
mod trouble;
