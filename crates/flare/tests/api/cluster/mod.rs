//! Several processes on one store: what one creates another knows, what one had another takes over, and nothing is lost. And a node
//! by itself, which is a cluster of one.

mod gathered;
mod guarded;
mod moves;
pub mod nodes;
mod secure;
mod shapes;
mod stuck;
mod together;
mod way;
