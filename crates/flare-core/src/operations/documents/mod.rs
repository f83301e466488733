//! Documents: taken in from origins, looked for, and explained. In: a write, or a question about urls. Out: what became of
//! the write, or what is known of each document and who has it.

pub(in crate::operations) mod counting;
pub mod drift;
pub mod explain;
pub mod filters;
pub mod holders;
pub mod intake;
pub(in crate::operations) mod known;
pub mod search;
mod tombstones;
