//! What a client is told. In: a change, a subscription with all that does not depend on the document done once
//! (`compiled`), and what to tell of it. Out: the request, its headers, body and signature.
//!
//! Whatever sends, watches or traces notifications may know this; nothing here knows them.

pub mod change;
pub mod compiled;
mod event;
pub mod message;
pub mod signature;
