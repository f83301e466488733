//! What others ask of a delivery thread. In: a question about a subscription, some documents, or all of them. Out: an
//! answer; nothing here changes anything.

pub mod census;
pub mod examine;
pub mod inspect;
pub mod needs;
pub mod survey;
