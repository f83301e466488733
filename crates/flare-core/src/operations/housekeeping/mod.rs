//! What a node does by itself, again and again: what is no longer needed goes, who fails for too long is disabled, the
//! clock is watched, and the operator is told.

pub mod behind;
pub mod clock;
pub mod disabling;
pub mod history;
pub mod late;
pub mod notices;
pub mod retention;
