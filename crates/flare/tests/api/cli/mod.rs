//! The program: its command line, its life as a process, its demo.

pub mod access;
pub mod bench;
pub mod commands;
pub mod demo;
pub mod program;
pub mod upkeep;
