//! Flare through its real binary, over real HTTP: every rule of the API, and what clients, origins, disks, clocks and
//! kill -9 can do to it. One program, so that it is linked once; one module for each thing shown.
//!
//! The engine is the embedded one; FLARE_TEST_STORE=memory runs what does not need a disk on the other.

#![allow(
    clippy::disallowed_methods,
    reason = "tests measure the machine's own time, and own their tasks by their runtime"
)]

mod support;

mod attempts;
mod boards;
mod bulk;
mod caps;
mod clocks;
mod commands;
mod content;
mod crashes;
mod cut_requests;
mod dead_hosts;
mod dead_letters;
mod deleting;
mod delivery;
mod demo;
mod disk_full;
mod documents;
mod doubts;
mod drift;
mod errors_and_pages;
mod events;
mod explain;
mod filters;
mod gone;
mod history;
mod hostile_clients;
mod limits;
mod metrics;
mod openapi;
mod order;
mod outages;
mod passive;
mod patches;
mod plots;
#[cfg(any(feature = "cpu-profile", feature = "heap-profile"))]
mod pprof;
mod profiles;
mod program;
mod read_alike;
mod replays;
mod resources;
mod retention;
mod rotation;
mod shards;
mod signatures;
mod simulate;
mod stopping;
mod subscriptions;
mod sweeps;
mod telemetry;
mod trials;
mod troubled;
mod verdicts;
