//! What someone who sees every request and every answer can hold Flare to. A notification comes in ([`told`]), what Flare
//! can take its client to have goes out ([`beliefs`]); beside them what origins say ([`world`]), what subscriptions ask for
//! ([`wish`]) and how clients answer ([`mood`]), all drawn from a seed ([`dice`]).
//!
//! Pure, and shared by those who test the real program from outside (`cargo xtask stress`) and whole nodes from inside
//! (`flare-sim`), so that both mean the same by a promise.

pub mod beliefs;
pub mod dice;
pub mod mood;
pub mod told;
pub mod wish;
pub mod world;
