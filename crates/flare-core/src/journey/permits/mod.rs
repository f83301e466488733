//! How much may be open at once: caps of the node in, permits out. Nothing here knows a subscription's feeds or a thread's
//! state; delivery threads ask here before they open a connection, begin an attempt or hold a document in memory.

pub mod bucket;
pub mod caps;
pub mod concurrency;
pub mod pool;
pub mod room;
pub mod shares;
