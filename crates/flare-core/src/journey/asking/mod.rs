//! What others ask of a delivery thread. In: a question about a subscription, some documents, or all of them. Out: an
//! answer; nothing here changes anything.

pub mod census;
pub mod documents;
pub mod needs;
pub mod notable;
pub mod progress;
