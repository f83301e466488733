//! The form of a subscription, to create one or to edit it: what was filled in, what it would do, and what is wrong with it.

pub mod create;
mod draft;
pub mod edit;
mod fields;
pub mod pick;
pub mod preview;
pub mod trial;

pub use create::Created;
