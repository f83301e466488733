//! How full nodes are: the weight of the units that each should have, by its own weight.

use std::collections::BTreeMap;

use super::{Node, NodeId, NodeState, View};

/// The nodes that count, and what they carry.
pub(super) struct Scale<'v> {
    view: &'v View,
    carried: BTreeMap<&'v NodeId, f64>,
    /// Units that have no node yet count too: they will be somewhere.
    total: f64,
    capacity: f64,
}

impl<'v> Scale<'v> {
    pub fn of(view: &'v View) -> Scale<'v> {
        let mut carried: BTreeMap<&NodeId, f64> = view.nodes.keys().map(|id| (id, 0.0)).collect();
        for unit in view.units.values() {
            if let Some(sum) = unit.node().and_then(|node| carried.get_mut(node)) {
                *sum += unit.weight;
            }
        }
        let total = view.units.values().map(|unit| unit.weight).sum();
        let counted = view.nodes.values().filter(|node| may_keep(view, node));
        let capacity = counted.map(|node| f64::from(node.weight)).sum();
        Scale { view, carried, total, capacity }
    }

    pub fn leave(&mut self, node: Option<&NodeId>, weight: f64) {
        if let Some(sum) = node.and_then(|node| self.carried.get_mut(node)) {
            *sum -= weight;
        }
    }

    pub fn enter(&mut self, node: &NodeId, weight: f64) {
        if let Some(sum) = self.carried.get_mut(node) {
            *sum += weight;
        }
    }

    /// What a node of weight 1 would carry if all were even.
    pub fn mean(&self) -> f64 {
        if self.capacity > 0.0 { self.total / self.capacity } else { 0.0 }
    }

    /// The weight of the units it should have.
    pub fn carried(&self, node: &NodeId) -> f64 {
        self.carried.get(node).copied().unwrap_or(0.0)
    }

    /// How full it is, with so much more.
    pub fn fullness(&self, id: &NodeId, more: f64) -> f64 {
        let weight = self.view.nodes.get(id).map_or(0, |node| node.weight);
        (self.carried(id) + more) / f64::from(weight.max(1))
    }

    /// The same, compared with the mean: 1 is exactly its part.
    pub fn share(&self, id: &NodeId, more: f64) -> f64 {
        let mean = self.mean();
        if mean > 0.0 { self.fullness(id, more) / mean } else { 0.0 }
    }
}

/// It may keep what it has.
pub(super) fn may_keep(view: &View, node: &Node) -> bool {
    matches!(node.state, NodeState::Live | NodeState::Suspect)
        && node.weight > 0
        && node.protocol >= view.protocol
        && !node.is_stuck()
}

/// It may get what has no place.
pub(super) fn may_take(view: &View, node: &Node) -> bool {
    node.state == NodeState::Live && node.trouble.is_none() && may_keep(view, node)
}

/// It may get more for the sake of others.
pub(super) fn may_take_for_balance(view: &View, node: &Node) -> bool {
    may_take(view, node) && node.cooldown.is_none() && !node.gives_back
}
