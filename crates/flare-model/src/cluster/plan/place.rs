//! Units that cannot be where they should: new ones, those of nodes that are gone, drain, take none, or cannot read what
//! they would be told. They go at once to where they fit, the largest first, so that the small ones fill what is left.

use super::scale::{may_keep, may_take, may_take_for_balance};
use super::{Draft, NodeId, NodeState, Reason, Unit, UnitId, View};

/// How much above the mean a node may get that has, or had, the unit.
const WELCOME: f64 = 1.1;

pub(super) fn place(draft: &mut Draft<'_>) {
    let view = draft.view;
    let mut without: Vec<(&UnitId, &Unit, Reason)> = view
        .units
        .iter()
        .filter_map(|(id, unit)| why_without_place(view, unit).map(|reason| (id, unit, reason)))
        .collect();
    without.sort_by(|(one, first, _), (other, second, _)| {
        second.weight.total_cmp(&first.weight).then_with(|| one.cmp(other))
    });
    // They weigh nothing where they are not going to be.
    for (_, unit, _) in &without {
        draft.scale.leave(unit.node(), unit.weight);
    }
    for (id, unit, reason) in without {
        // What `put` takes away is put back first.
        if let Some(node) = unit.node() {
            draft.scale.enter(node, unit.weight);
        }
        match fitting(draft, unit) {
            Some(node) => draft.put(id, node, reason),
            None => {
                draft.scale.leave(unit.node(), unit.weight);
                draft.homeless.push(id.clone());
            }
        }
    }
    draft.homeless.sort();
}

/// Why it cannot be where it should; nothing if it can.
pub(super) fn why_without_place(view: &View, unit: &Unit) -> Option<Reason> {
    let Some(desired) = &unit.desired else { return Some(unit.origin) };
    match view.nodes.get(&desired.node) {
        None => Some(Reason::NodeGone),
        Some(node) if node.state == NodeState::Gone => Some(Reason::NodeGone),
        Some(node) => (!may_keep(view, node)).then_some(Reason::Drain),
    }
}

/// The node that has it, or had it before, if there is room; otherwise the one that is then the least full.
fn fitting<'v>(draft: &Draft<'v>, unit: &'v Unit) -> Option<&'v NodeId> {
    let view = draft.view;
    let of = |fits: &dyn Fn(&super::Node) -> bool| -> Vec<&'v NodeId> {
        view.nodes.iter().filter(|(_, node)| fits(node)).map(|(id, _)| id).collect()
    };
    // One that was lost lately, or has too much to do already, only if there is no other.
    let steady = of(&|node| may_take_for_balance(view, node));
    let candidates = if steady.is_empty() { of(&|node| may_take(view, node)) } else { steady };
    let home = unit.desired.as_ref().and_then(|desired| desired.home.as_ref());
    let known = [unit.effective.owner(), home].into_iter().flatten();
    let welcome = known
        .filter_map(|known| candidates.iter().copied().find(|id| *id == known))
        .find(|id| draft.scale.fullness(id, unit.weight) <= draft.scale.mean() * WELCOME);
    let least = || {
        candidates.iter().copied().min_by(|one, other| {
            let fullness = |id| draft.scale.fullness(id, unit.weight);
            fullness(one).total_cmp(&fullness(other)).then_with(|| one.cmp(other))
        })
    };
    welcome.or_else(least)
}
