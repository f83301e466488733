//! What follows from an answer. In: how an attempt ended. Out: the feed's new state, in memory at once and in the ledger
//! with the next record.

pub mod decision;
pub mod recorder;
pub mod settle;
