//! Why a unit is where it is. The view that a plan is made of comes in, with one unit; what would become of it, node by node
//! and reason by reason, goes out. It asks the very functions that plan, so the two cannot disagree.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::place::why_without_place;
use super::scale::{Scale, may_take};
use super::words::{self, percent};
use super::{
    Draft, LEAST_GAIN, Node, NodeId, NodeState, Plan, Reason, Unit, UnitId, UnitState, View, balance, plan,
};
use crate::time::Timestamp;

/// Why a unit is where it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AssignmentExplanation")]
pub struct Explanation {
    /// The unit.
    pub unit: UnitId,
    /// How it fares.
    pub state: UnitState,
    /// Where it should be.
    pub node: Option<NodeId>,
    /// Who holds the claim now.
    pub owner: Option<NodeId>,
    /// The owner's epoch.
    pub epoch: Option<u64>,
    /// What would become of it now.
    pub verdict: Verdict,
    /// The same in words.
    pub explanation: String,
    /// The decision that put it where it should be.
    pub decided: Option<Decided>,
    /// The nodes, each with what speaks for and against it.
    pub candidates: Vec<Candidate>,
    /// Where it was before, the newest first.
    pub history: Vec<Moved>,
}

/// What would become of a unit now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AssignmentVerdict")]
pub enum Verdict {
    /// It is where it should be, and stays.
    Stays,
    /// It gets another node with the next plan.
    Moves,
    /// Something is under way, or has to wait.
    Waits,
    /// There is no node that may have it.
    Cannot,
}

/// A decision that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AssignmentDecided")]
pub struct Decided {
    /// When, by the clock of the node that decided.
    pub at: Timestamp,
    /// The node that led then.
    pub by: NodeId,
    /// Its epoch.
    pub leader_epoch: u64,
    /// Why.
    pub reason: Reason,
}

/// A move that was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AssignmentMoved")]
pub struct Moved {
    /// When, by the clock of the node that decided.
    pub at: Timestamp,
    /// Where it should have been before.
    pub from: Option<NodeId>,
    /// Where to.
    pub to: NodeId,
    /// The epoch under which it then worked, where that is known.
    #[serde(default)]
    pub epoch: Option<u64>,
    /// Why.
    pub reason: Reason,
}

/// A node, as a place for the unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AssignmentCandidate")]
pub struct Candidate {
    /// The node.
    pub node: NodeId,
    /// What follows from the deciders.
    pub decision: Decision,
    /// How full it is: 1 is exactly its part of all units.
    pub load: f64,
    /// How full it would be with the unit.
    pub load_after: f64,
    /// What speaks for and against it.
    pub deciders: Vec<Decider>,
}

/// Whether a node is the place for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AssignmentDecision")]
pub enum Decision {
    /// It is there.
    Current,
    /// It could go there, or goes there.
    Yes,
    /// It could go there, and nothing would be better.
    Worse,
    /// It cannot go there.
    No,
}

/// One thing that is looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AssignmentDecider")]
pub struct Decider {
    /// What is looked at.
    pub decider: DeciderName,
    /// What it says: `yes` or `no`.
    pub decision: Decision,
    /// Why, in words.
    pub detail: String,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AssignmentDeciderName")]
pub enum DeciderName {
    /// Whether the node renews its lease, and works.
    Alive,
    /// Whether it hands its units over.
    Draining,
    /// Whether it takes units at all.
    Weight,
    /// Whether it reads what the leader writes.
    Protocol,
    /// Whether something would be gained.
    Balance,
    /// Whether it was lost lately.
    Cooldown,
    /// Whether enough is under way.
    Moves,
    /// Whether a user put the unit somewhere.
    Pinned,
}

/// Explains a unit of the view; nothing where there is no such unit.
pub fn explain(
    view: &View,
    id: &UnitId,
    decided: Option<Decided>,
    history: Vec<Moved>,
) -> Option<Explanation> {
    let unit = view.units.get(id)?;
    let now = plan(view);
    let candidates: Vec<Candidate> =
        view.nodes.iter().map(|(node_id, node)| candidate(view, &now, (id, unit), (node_id, node))).collect();
    let (verdict, explanation) = verdict(view, &now, id, unit, &candidates);
    Some(Explanation {
        unit: id.clone(),
        state: view.state(unit),
        node: unit.node().cloned(),
        owner: unit.effective.owner().cloned(),
        epoch: unit.effective.epoch(),
        verdict,
        explanation,
        decided,
        candidates,
        history,
    })
}

fn verdict(view: &View, now: &Plan, id: &UnitId, unit: &Unit, candidates: &[Candidate]) -> (Verdict, String) {
    if let Some(moved) = now.moves.iter().find(|moved| moved.unit == *id) {
        return (Verdict::Moves, words::moves(view, moved));
    }
    if now.homeless.contains(id) {
        return (Verdict::Cannot, words::homeless(view, unit, why_without_place(view, unit)));
    }
    if let Some(words) = words::under_way(view, unit) {
        return (Verdict::Waits, words);
    }
    // What it would do if it had not to wait.
    let free = View { settles_in: None, moves: u32::MAX, ..view.clone() };
    if let Some(moved) = plan(&free).moves.iter().find(|moved| moved.unit == *id) {
        return (Verdict::Waits, words::held_back(view, moved));
    }
    (Verdict::Stays, words::stays(unit, candidates))
}

fn candidate(
    view: &View,
    now: &Plan,
    (id, unit): (&UnitId, &Unit),
    (node_id, node): (&NodeId, &Node),
) -> Candidate {
    let scale = Scale::of(view);
    let is_there = unit.node() == Some(node_id);
    let goes_there = now.moves.iter().any(|moved| moved.unit == *id && moved.to.node == *node_id);
    let more = if is_there { 0.0 } else { unit.weight };
    let without_place = why_without_place(view, unit).is_some();
    let mut deciders = words::fitness(view, node);
    deciders.push(if without_place {
        Decider::yes(DeciderName::Balance, "it has no place, and goes to where it fits".to_owned())
    } else {
        balanced(view, unit, node_id, goes_there)
    });
    deciders.extend(words::restraints(view, unit, node_id, node, without_place));
    let decision = if is_there && !without_place {
        Decision::Current
    } else if goes_there {
        Decision::Yes
    } else if !may_take(view, node) {
        Decision::No
    } else {
        let against = |name: DeciderName| {
            deciders.iter().any(|decider| decider.decider == name && decider.decision == Decision::No)
        };
        let held_back =
            [DeciderName::Cooldown, DeciderName::Moves, DeciderName::Pinned].into_iter().any(against);
        match (against(DeciderName::Balance), held_back) {
            (true, _) => Decision::Worse,
            (false, true) => Decision::No,
            // Another one is better still.
            (false, false) => Decision::Worse,
        }
    };
    Candidate {
        node: node_id.clone(),
        decision,
        load: round(scale.share(node_id, 0.0)),
        load_after: round(scale.share(node_id, more)),
        deciders,
    }
}

/// Whether balance would gain by it.
fn balanced(view: &View, unit: &Unit, to: &NodeId, goes_there: bool) -> Decider {
    let Some(from) = unit.node().filter(|from| *from != to) else {
        return Decider::yes(DeciderName::Balance, "it is there".to_owned());
    };
    let scale = Scale::of(view);
    let (here, there) = (scale.share(from, 0.0), scale.share(to, unit.weight));
    let draft = Draft { view, scale, moves: Default::default(), homeless: Vec::new() };
    if goes_there {
        return Decider::yes(DeciderName::Balance, format!("the plan moves it from {from} to {to}"));
    }
    let detail = if there >= here {
        format!("{to} would be {} fuller than {from} after the move", percent(there - here))
    } else {
        let gained =
            balance::gain(&draft, unit, from, to).unwrap_or(0.0) / draft.scale.mean().max(f64::MIN_POSITIVE);
        let level = (here - draft.scale.share(to, 0.0)) / 2.0;
        if level >= LEAST_GAIN && gained > 0.0 {
            return Decider::yes(
                DeciderName::Balance,
                format!("{to} would still be {} less full than {from}", percent(here - there)),
            );
        }
        format!("less than {} would be gained", percent(LEAST_GAIN))
    };
    Decider { decider: DeciderName::Balance, decision: Decision::No, detail }
}

impl Decider {
    pub(super) fn yes(decider: DeciderName, detail: String) -> Decider {
        Decider { decider, decision: Decision::Yes, detail }
    }

    pub(super) fn of(decider: DeciderName, speaks_for: bool, detail: String) -> Decider {
        let decision = if speaks_for { Decision::Yes } else { Decision::No };
        Decider { decider, decision, detail }
    }
}

/// To what people compare.
fn round(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}

/// Whether the node still renews its lease, and works.
pub(super) fn is_alive(node: &Node) -> bool {
    !matches!(node.state, NodeState::Gone | NodeState::Suspect) && node.trouble.is_none()
}
