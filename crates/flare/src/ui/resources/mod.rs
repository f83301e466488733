//! `/ui/resources`: what is tracked.

pub mod create;
pub mod delete;
pub mod list;
pub mod show;
