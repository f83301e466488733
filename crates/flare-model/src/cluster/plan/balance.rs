//! Moves for the sake of others: from who has too much to do, and from the fullest to the emptiest. Only units that run
//! are moved, and only so many are under way at once.

use std::cmp::Ordering;

use super::scale::{may_keep, may_take_for_balance};
use super::{Draft, LEAST_GAIN, NodeId, Reason, Unit, UnitId};

/// A part of a unit's weight that its move has to gain at least, where that is less than [`LEAST_GAIN`].
const LEAST_PART: f64 = 0.5;

/// A node that has too much to do gives a unit to the one that has the least, one at a time: what that does to its load is seen only
/// a while later. It is the largest after which the other still has clearly less to do.
pub(super) fn give_back(draft: &mut Draft<'_>) {
    let view = draft.view;
    for (from, node) in &view.nodes {
        let Some(load) = node.load.filter(|_| node.gives_back && may_keep(view, node)) else { continue };
        let under_way = view.units.values().any(|unit| {
            let given = |desired: &super::Desired| desired.reason == Reason::GiveBack;
            unit.effective.owner() == Some(from)
                && !unit.has_arrived()
                && unit.desired.as_ref().is_some_and(given)
        });
        if under_way || room(draft) == 0 {
            continue;
        }
        let others = view.nodes.iter().filter(|(id, other)| *id != from && may_take_for_balance(view, other));
        let least = others.filter_map(|(id, other)| Some((id, other.load?, other.weight))).min_by(
            |(one, first, _), (other, second, _)| first.total_cmp(second).then_with(|| one.cmp(other)),
        );
        let Some((to, its_load, its_weight)) = least else { continue };
        let carried = draft.scale.carried(from).max(f64::MIN_POSITIVE);
        let grows = f64::from(node.weight) / f64::from(its_weight);
        let fits = |unit: &Unit| its_load + load * unit.weight / carried * grows < load * (1.0 - LEAST_GAIN);
        let movable = movable(draft, from).into_iter().filter(|(_, unit)| fits(unit));
        let largest = movable.max_by(|(one, first), (other, second)| {
            first.weight.total_cmp(&second.weight).then_with(|| other.cmp(one))
        });
        if let Some((id, _)) = largest {
            draft.put(id, to, Reason::GiveBack);
        }
    }
}

/// From the fullest to the emptiest, until that is not worth it.
pub(super) fn balance(draft: &mut Draft<'_>) {
    if draft.view.settles_in.is_some() {
        return;
    }
    while room(draft) > 0
        && let Some((id, to)) = best(draft)
    {
        draft.put(id, to, Reason::Balance);
    }
}

/// How many more may be under way.
fn room(draft: &Draft<'_>) -> usize {
    let under_way = draft.view.units.values().filter(|unit| unit.is_moved_for_balance()).count();
    let planned =
        draft.moves.values().filter(|moved| matches!(moved.to.reason, Reason::Balance | Reason::GiveBack));
    (draft.view.moves as usize).saturating_sub(under_way + planned.count())
}

/// The next move, if there is one that is worth it.
fn best<'v>(draft: &Draft<'v>) -> Option<(&'v UnitId, &'v NodeId)> {
    let view = draft.view;
    let fuller = |one: &&NodeId, other: &&NodeId| -> Ordering {
        draft
            .scale
            .fullness(one, 0.0)
            .total_cmp(&draft.scale.fullness(other, 0.0))
            .then_with(|| other.cmp(one))
    };
    let takers = view.nodes.iter().filter(|(_, node)| may_take_for_balance(view, node)).map(|(id, _)| id);
    let to = takers.min_by(fuller)?;
    let mut sources: Vec<&NodeId> =
        view.nodes.iter().filter(|(id, node)| *id != to && may_keep(view, node)).map(|(id, _)| id).collect();
    sources.sort_by(|one, other| fuller(other, one));
    for from in sources {
        let scale = &draft.scale;
        let weight = |id: &NodeId| f64::from(view.nodes[id].weight);
        let level = (scale.carried(from) + scale.carried(to)) / (weight(from) + weight(to));
        if scale.fullness(from, 0.0) - level < LEAST_GAIN * scale.mean() {
            // All that follow are less full.
            return None;
        }
        let gains = movable(draft, from)
            .into_iter()
            .filter_map(|(id, unit)| Some((attachment(unit, to), gain(draft, unit, from, to)?, id)));
        let best = gains.max_by(|(attached, gain, id), (other_attached, other_gain, other_id)| {
            attached.cmp(other_attached).then(gain.total_cmp(other_gain)).then_with(|| other_id.cmp(id))
        });
        if let Some((_, _, id)) = best {
            return Some((id, to));
        }
    }
    None
}

/// Which to move first: what belongs there, then what belongs elsewhere anyway, then what is at home. So what has come home is left
/// in peace, and a rolling restart moves each unit at most twice.
fn attachment(unit: &Unit, to: &NodeId) -> u8 {
    match unit.desired.as_ref().and_then(|desired| desired.home.as_ref()) {
        Some(home) if home == to => 2,
        Some(_) => 1,
        None => 0,
    }
}

/// By how much the fuller of the two would be less full; nothing where that is not worth a move.
pub(super) fn gain(draft: &Draft<'_>, unit: &Unit, from: &NodeId, to: &NodeId) -> Option<f64> {
    let scale = &draft.scale;
    let before = scale.fullness(from, 0.0);
    let after = scale.fullness(from, -unit.weight).max(scale.fullness(to, unit.weight));
    let gain = before - after;
    let takes_away = before - scale.fullness(from, -unit.weight);
    let least = (LEAST_GAIN * scale.mean()).min(LEAST_PART * takes_away);
    (gain > 0.0 && gain >= least).then_some(gain)
}

/// Units that run there, that nobody put there, and that were not moved in this plan.
fn movable<'v>(draft: &Draft<'v>, node: &NodeId) -> Vec<(&'v UnitId, &'v Unit)> {
    let there = |unit: &Unit| unit.node() == Some(node) && unit.has_arrived();
    let pinned = |unit: &Unit| unit.desired.as_ref().is_some_and(|desired| desired.pinned);
    let units = draft.view.units.iter().filter(|(_, unit)| there(unit) && !pinned(unit));
    units.filter(|(id, _)| !draft.moves.contains_key(id)).collect()
}
