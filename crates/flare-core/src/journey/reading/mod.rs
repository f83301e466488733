//! What is to be sent next. In: a courier that is free. Out: the next attempt, with its document, from the tail where it is
//! there and from the store where it is not; and which documents a sweep goes through.

pub mod due;
pub mod insist;
pub mod interest;
pub mod loading;
pub mod revisions;
pub mod states;
pub mod sweeping;
pub mod take;
pub mod unread;
