//! Who is next. In: lanes that moved, alarms whose time has come, calls for what was stood in line for. Out: subscriptions
//! in the queue of their host, each once, and a courier for the host, within the caps. Nothing is copied for anybody.

pub mod alarms;
pub mod concurrency;
pub mod ready;
pub mod sharing;
pub mod summoning;
