//! What goes wrong around Flare: clients, hosts, disks, clocks, kill -9, and what is left of it.

pub mod caps;
pub mod clocks;
pub mod crashes;
pub mod dead_hosts;
pub mod dead_letters;
pub mod disk_full;
pub mod doubts;
pub mod failures;
pub mod gone;
pub mod hostile_clients;
pub mod lost_stores;
pub mod outages;
pub mod plans;
pub mod postgresql;
pub mod retention;
pub mod sharing;
pub mod stopping;
pub mod troubled;
