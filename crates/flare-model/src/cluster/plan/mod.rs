//! Who should have which unit. A [`View`] of nodes and units comes in, a [`Plan`] goes out: the same for the same view, on
//! whichever node and in whichever year.
//!
//! - Units that nobody can have where they are (`place`) go at once to where they fit, as many as there are. Those of a node that is stuck
//!   go only to nodes without any trouble: where the store is away for all, nothing is shuffled.
//! - Balance (`balance`) waits until the members have been the same for a while, moves few at a time, only what runs,
//!   and stops where there is little to gain.
//! - What a user put somewhere (`reroute`) stays there until that node goes or drains.

mod balance;
pub mod explain;
mod place;
mod reroute;
mod scale;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

pub use reroute::{Command, Refusal, reroute};
use scale::Scale;

use super::keys::Trouble;
use super::{NodeId, NodeState, Reason, UnitId, UnitState};

/// Below so much of the mean a gain is not worth a move.
pub const LEAST_GAIN: f64 = 0.05;

/// Everything that a plan depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The epoch of the leader that plans; what it writes carries it.
    pub leader_epoch: u64,
    /// The protocol in which it writes.
    pub protocol: u32,
    /// All nodes that are members. One that is missing is gone.
    pub nodes: BTreeMap<NodeId, Node>,
    /// All units there are.
    pub units: BTreeMap<UnitId, Unit>,
    /// How long the members have to stay the same until units move for balance; nothing: they have.
    pub settles_in: Option<Duration>,
    /// Units that may be under way at once for balance.
    pub moves: u32,
}

/// A node, as far as it matters where units go.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// How it fares.
    pub state: NodeState,
    /// How much it takes, compared with others; 0: nothing.
    pub weight: u32,
    /// The newest protocol that it reads.
    pub protocol: u32,
    /// The share of its processors that it uses, if it has said so.
    pub load: Option<f64>,
    /// It has too much to do, and gives units back.
    pub gives_back: bool,
    /// It was lost lately, and gets no units for balance for so long.
    pub cooldown: Option<Duration>,
    /// It lives, and does not work, or may not.
    pub trouble: Option<Trouble>,
}

impl Node {
    /// One that is live and like all others.
    pub fn live(weight: u32, protocol: u32) -> Node {
        let state = NodeState::Live;
        Node { state, weight, protocol, load: None, gives_back: false, cooldown: None, trouble: None }
    }

    /// It certainly does not work: it keeps nothing that another could have.
    pub fn is_stuck(&self) -> bool {
        self.trouble.is_some_and(|trouble| trouble.stuck)
    }
}

/// A unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// How much work it is, compared with others.
    pub weight: f64,
    /// Why it is there, until it has been somewhere: [`Reason::Created`] or [`Reason::Shards`].
    pub origin: Reason,
    /// Where it should be.
    pub desired: Option<Desired>,
    /// Where it is.
    pub effective: Effective,
}

/// Where a unit should be: what the leader wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desired {
    /// On this node.
    pub node: NodeId,
    /// Because of this.
    pub reason: Reason,
    /// A user put it there.
    pub pinned: bool,
    /// It came from there only because that node went or drained: if something has to move there, this is what.
    pub home: Option<NodeId>,
}

/// Where a unit is: who holds its claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Effective {
    /// Nobody has it.
    #[default]
    Nobody,
    /// This node has claimed it.
    Held {
        /// The node.
        node: NodeId,
        /// The epoch under which it works, once it has one.
        epoch: Option<u64>,
    },
}

impl Effective {
    /// The node that has it.
    pub fn owner(&self) -> Option<&NodeId> {
        match self {
            Effective::Nobody => None,
            Effective::Held { node, .. } => Some(node),
        }
    }

    /// The epoch under which it works there.
    pub fn epoch(&self) -> Option<u64> {
        match self {
            Effective::Nobody => None,
            Effective::Held { epoch, .. } => *epoch,
        }
    }
}

impl Unit {
    /// Where it should be.
    pub fn node(&self) -> Option<&NodeId> {
        self.desired.as_ref().map(|desired| &desired.node)
    }

    /// How it fares, by which nodes are there.
    pub fn state(&self, is_there: impl Fn(&NodeId) -> bool) -> UnitState {
        match (self.node(), self.effective.owner()) {
            (_, Some(owner)) if !is_there(owner) => UnitState::Orphaned,
            (Some(node), Some(owner)) if node == owner => UnitState::Running,
            (_, Some(_)) => UnitState::Draining,
            (Some(node), None) if !is_there(node) => UnitState::Orphaned,
            (Some(_), None) => UnitState::Assigned,
            (None, None) => UnitState::Unassigned,
        }
    }

    /// It is where it should be.
    fn has_arrived(&self) -> bool {
        self.node().is_some() && self.node() == self.effective.owner()
    }

    /// It is being moved for the sake of others than itself.
    fn is_moved_for_balance(&self) -> bool {
        let for_balance = |desired: &Desired| matches!(desired.reason, Reason::Balance | Reason::GiveBack);
        self.desired.as_ref().is_some_and(for_balance) && !self.has_arrived()
    }
}

impl View {
    /// How a unit fares.
    pub fn state(&self, unit: &Unit) -> UnitState {
        unit.state(|node| self.nodes.get(node).is_some_and(|node| node.state != NodeState::Gone))
    }
}

/// What is to be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// By which leader.
    pub leader_epoch: u64,
    /// Units that get another node, by name.
    pub moves: Vec<Move>,
    /// Units that cannot be where they are, and for which there is no other node.
    pub homeless: Vec<UnitId>,
}

/// A unit that gets another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The unit.
    pub unit: UnitId,
    /// Where it should have been.
    pub from: Option<NodeId>,
    /// Where it should be.
    pub to: Desired,
}

/// Decides who should have which unit.
pub fn plan(view: &View) -> Plan {
    let mut draft = Draft { view, scale: Scale::of(view), moves: BTreeMap::new(), homeless: Vec::new() };
    place::place(&mut draft);
    balance::give_back(&mut draft);
    balance::balance(&mut draft);
    draft.finish()
}

/// A plan while it is made.
struct Draft<'v> {
    view: &'v View,
    scale: Scale<'v>,
    moves: BTreeMap<&'v UnitId, Move>,
    homeless: Vec<UnitId>,
}

impl<'v> Draft<'v> {
    fn put(&mut self, id: &'v UnitId, to: &'v NodeId, reason: Reason) {
        let unit = &self.view.units[id];
        let from = unit.node();
        self.scale.leave(from, unit.weight);
        self.scale.enter(to, unit.weight);
        let pinned = unit.desired.as_ref().is_some_and(|desired| desired.pinned) && reason == Reason::Reroute;
        let desired = Desired { node: to.clone(), reason, pinned, home: home(unit, to, reason) };
        self.moves.insert(id, Move { unit: id.clone(), from: from.cloned(), to: desired });
    }

    fn finish(self) -> Plan {
        let moves = self.moves.into_values().collect();
        Plan { leader_epoch: self.view.leader_epoch, moves, homeless: self.homeless }
    }
}

/// Where it is to go back to if there is a choice: a rolling restart then moves each unit away and back, and no other.
fn home(unit: &Unit, to: &NodeId, reason: Reason) -> Option<NodeId> {
    let desired = unit.desired.as_ref()?;
    let home = match reason {
        Reason::NodeGone | Reason::Drain => desired.home.as_ref().unwrap_or(&desired.node),
        _ => return None,
    };
    (home != to).then(|| home.clone())
}
