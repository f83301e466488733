//! Who may do what, over HTTP: the guard before every operation and page, and the operations on tokens, accounts and the
//! audit log.

pub mod accounts;
pub mod audit;
mod caller;
pub mod guard;
mod lasting;
pub mod tokens;

pub use caller::By;
