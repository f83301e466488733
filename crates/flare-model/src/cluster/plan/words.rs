//! The words of explanations.

use super::explain::{Candidate, Decider, DeciderName, Decision, is_alive};
use super::{Move, Node, NodeId, NodeState, Reason, Unit, View};
use crate::cluster::keys::Trouble;
use crate::duration::HumanDuration;

/// `4 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// What the node itself is like.
pub(super) fn fitness(view: &View, node: &Node) -> Vec<Decider> {
    let alive = match (node.state, node.trouble) {
        (NodeState::Gone, _) => "its lease is over".to_owned(),
        (NodeState::Suspect, _) => "it missed a renewal".to_owned(),
        (_, Some(trouble)) if trouble.stuck => does_not_work(trouble),
        (_, Some(trouble)) => {
            format!("it renews its lease, and may not work: {}", trouble.ailment.words())
        }
        (_, None) => "it renews its lease".to_owned(),
    };
    let drains = matches!(node.state, NodeState::Draining | NodeState::Drained);
    let draining = if drains { "it hands its units over" } else { "it takes units" };
    let weight = if node.weight == 0 {
        "its weight is 0: it takes no units".to_owned()
    } else {
        format!("its weight is {}", node.weight)
    };
    let reads = node.protocol >= view.protocol;
    let protocol = if reads {
        format!("it reads protocol {}, in which the leader writes", view.protocol)
    } else {
        format!("it reads up to protocol {}, and the leader writes protocol {}", node.protocol, view.protocol)
    };
    vec![
        Decider::of(DeciderName::Alive, is_alive(node), alive),
        Decider::of(DeciderName::Draining, !drains, draining.to_owned()),
        Decider::of(DeciderName::Weight, node.weight > 0, weight),
        Decider::of(DeciderName::Protocol, reads, protocol),
    ]
}

/// It lives, and that is all.
fn does_not_work(trouble: Trouble) -> String {
    format!("it renews its lease, and does not work: {}", trouble.ailment.words())
}

/// What holds a move back.
pub(super) fn restraints(
    view: &View,
    unit: &Unit,
    id: &NodeId,
    node: &Node,
    without_place: bool,
) -> Vec<Decider> {
    let is_there = unit.node() == Some(id);
    let cooldown = match (node.cooldown, node.gives_back) {
        (Some(left), _) => (
            without_place || is_there,
            format!("it was lost lately, and gets no units for balance for {}", HumanDuration(left)),
        ),
        (None, true) => (without_place || is_there, "it has too much to do, and gives units back".to_owned()),
        (None, false) => (true, "it has held its lease".to_owned()),
    };
    let under_way = view.units.values().filter(|unit| unit.is_moved_for_balance()).count();
    let moves = if without_place {
        (true, "units without a place are not counted".to_owned())
    } else if let Some(left) = view.settles_in {
        (is_there, format!("the members have to stay the same for {} more", HumanDuration(left)))
    } else {
        let enough = under_way >= view.moves as usize;
        (is_there || !enough, format!("{under_way} of {} are under way", view.moves))
    };
    let pinned_to = unit.desired.as_ref().filter(|desired| desired.pinned).map(|desired| &desired.node);
    let pinned = match pinned_to {
        Some(node) if node == id => (true, "a user put it there".to_owned()),
        Some(node) if !without_place => (false, format!("a user put it on {node}")),
        _ => (true, "nobody put it anywhere".to_owned()),
    };
    [(DeciderName::Cooldown, cooldown), (DeciderName::Moves, moves), (DeciderName::Pinned, pinned)]
        .into_iter()
        .map(|(name, (speaks_for, detail))| Decider::of(name, speaks_for, detail))
        .collect()
}

/// It gets another node.
pub(super) fn moves(view: &View, moved: &Move) -> String {
    let to = &moved.to.node;
    let left = moved.from.as_ref().and_then(|from| view.nodes.get(from));
    let from = moved.from.as_ref().map_or_else(|| "its node".to_owned(), ToString::to_string);
    match moved.to.reason {
        Reason::Created | Reason::Shards => format!("it is new, and {to} is the least full"),
        Reason::NodeGone => format!("{from} is gone, and it fits on {to}"),
        Reason::Drain if left.is_some_and(Node::is_stuck) => {
            format!("{from} lives and does not work, and it fits on {to}")
        }
        Reason::Drain => format!("{from} hands its units over, and it fits on {to}"),
        Reason::Balance => format!("{from} is fuller than {to}"),
        Reason::GiveBack => format!("{from} has too much to do, and {to} has the least"),
        Reason::Reroute => format!("a user moves it to {to}"),
    }
}

/// There is no node for it.
pub(super) fn homeless(view: &View, unit: &Unit, why: Option<Reason>) -> String {
    let node = unit.node().and_then(|node| view.nodes.get(node));
    let why = match why {
        Some(Reason::Drain) if node.is_some_and(Node::is_stuck) => "its node lives and does not work",
        Some(Reason::NodeGone) => "its node is gone",
        Some(Reason::Drain) => "its node takes no units any more",
        _ => "it is new",
    };
    format!(
        "{why}, and no node takes units: all are draining, have weight 0, missed a renewal, do not work, or read an older protocol"
    )
}

/// It is not yet where it should be.
pub(super) fn under_way(view: &View, unit: &Unit) -> Option<String> {
    let node = unit.node()?;
    match unit.effective.owner() {
        Some(owner) if owner == node => None,
        Some(owner) if view.nodes.get(owner).is_some_and(|node| node.state != NodeState::Gone) => {
            Some(format!("{owner} finishes what is in flight, and {node} waits for that"))
        }
        Some(owner) => Some(format!("{owner} is gone, and {node} waits until its lease is over")),
        None => Some(format!("{node} was told and has not claimed it yet")),
    }
}

/// It would move if it had not to wait.
pub(super) fn held_back(view: &View, moved: &Move) -> String {
    let to = &moved.to.node;
    match view.settles_in {
        Some(left) => format!(
            "it would go to {to}, once the members have stayed the same for {} more",
            HumanDuration(left)
        ),
        None => format!("it would go to {to}, once fewer than {} units are under way", view.moves),
    }
}

/// It stays: by the node that comes nearest to being better.
pub(super) fn stays(unit: &Unit, candidates: &[Candidate]) -> String {
    if let Some(desired) = unit.desired.as_ref().filter(|desired| desired.pinned) {
        return format!("a user put it on {}", desired.node);
    }
    let others = candidates.iter().filter(|candidate| candidate.decision != Decision::Current);
    let nearest = others.min_by(|one, other| {
        let refused = |candidate: &Candidate| candidate.decision == Decision::No;
        refused(one).cmp(&refused(other)).then(one.load_after.total_cmp(&other.load_after))
    });
    let Some(nearest) = nearest else { return "there is no other node".to_owned() };
    let against = nearest.deciders.iter().find(|decider| decider.decision == Decision::No);
    match against {
        Some(against) if nearest.decision == Decision::No => {
            format!("{} cannot have it: {}", nearest.node, against.detail)
        }
        Some(against) => against.detail.clone(),
        None => "other units gain more by a move".to_owned(),
    }
}
