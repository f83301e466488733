//! The body of a delivery thread. In: its bell, the clock, and what the node asks of it (`command`). Out: subscriptions are
//! taken over (`opening`), told what is new (`standing`), and let go (`leaving`); everything is recorded when it stops.
//!
//! It knows the rooms that act on the state of a thread; none of them knows it.

pub mod command;
pub mod leaving;
pub mod obey;
pub mod opening;
pub mod run;
pub mod spawn;
pub mod standing;
