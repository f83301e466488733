//! The ways between a node and what it talks to: which of them are cut, and in which direction, as the schedule says.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// What a node talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Store,
    Coordinator,
    /// The other nodes, for what is sent on to whoever serves a subscription.
    Nodes,
}

/// In which direction something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the node.
    Out,
    /// To the node.
    Back,
}

/// The ways of one node. Clones are the same ways.
#[derive(Clone, Default)]
pub struct Ways {
    cut: Arc<Mutex<BTreeSet<(End, Direction)>>>,
}

impl Ways {
    /// Nothing passes this way any more, or everything does.
    pub fn cut(&self, end: End, direction: Direction, cut: bool) {
        let mut ways = self.cut.lock();
        match cut {
            true => ways.insert((end, direction)),
            false => ways.remove(&(end, direction)),
        };
    }

    /// Everything passes again.
    pub fn heal(&self) {
        self.cut.lock().clear();
    }

    pub fn is_cut(&self, end: End, direction: Direction) -> bool {
        self.cut.lock().contains(&(end, direction))
    }
}
