//! Why, and what if: operations that explain and change nothing.

pub mod explain;
pub mod history;
pub mod simulate;
pub mod tail;
mod tail_of_others;
