//! From an attempt to its answer. In: an attempt and its document. Out: one HTTP request, and how it ended. Tests of a
//! subscription and errands of the node go the same way.

pub mod courier;
pub mod errand;
pub mod trial;
