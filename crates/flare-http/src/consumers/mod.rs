//! `/consumers`.

pub mod create;
pub mod dead_letters;
pub mod delete;
pub mod list;
pub mod pause;
pub mod replace;
pub mod replay;
pub mod show;
pub mod status;
