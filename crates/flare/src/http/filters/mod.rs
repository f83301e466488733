//! Expressions.

pub mod test;
