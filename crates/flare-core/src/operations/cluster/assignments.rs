//! `/cluster/assignments`: which node should have which unit, which has it, and why; and what users want moved.

use flare_model::cluster::plan::explain::{Decided, Explanation, explain};
use flare_model::cluster::plan::{Command, Plan};
use flare_model::cluster::{NodeId, Reason, UnitId, UnitKind, UnitState};
use flare_model::invalid::Invalid;
use flare_model::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::units;
use crate::cluster::{Rerouted, Seen};
use crate::operations::{App, Done, Failure};

/// Which assignments to list.
#[derive(Clone, Debug, Default)]
pub struct AssignmentQuery {
    /// Of this node, which should have them or has them.
    pub node: Option<NodeId>,
    /// Of this kind.
    pub kind: Option<UnitKind>,
    /// That are so.
    pub state: Option<UnitState>,
    /// This one.
    pub unit: Option<UnitId>,
}

/// A unit, where it should be and where it is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Assignment")]
pub struct AssignmentView {
    /// The unit.
    pub unit: UnitId,
    /// Its kind.
    pub kind: UnitKind,
    /// Where it should be.
    pub node: Option<NodeId>,
    /// Who has it now.
    pub owner: Option<NodeId>,
    /// Under which epoch.
    pub epoch: Option<u64>,
    /// How it is.
    pub state: UnitState,
    /// The lanes that it has of its resource.
    pub lanes: Vec<u8>,
    /// How much work it is, compared with others.
    pub weight: f64,
    /// Why it is where it should be.
    pub reason: Option<Reason>,
    /// Since when it should be there, by the clock of the node that decided.
    pub since: Option<Timestamp>,
}

/// `GET /cluster/assignments/explain`.
pub type ExplanationView = Explanation;

/// `POST /cluster/reroute`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "RerouteDraft")]
pub struct RerouteDraft {
    /// What is to be done, in order, all or nothing. None: plan now, without waiting for the members to settle.
    #[serde(default)]
    pub commands: Vec<Command>,
    /// Only show what would be done.
    #[serde(default)]
    pub dry_run: bool,
}

/// What is done, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Rerouted")]
pub struct RerouteView {
    /// Nothing was done.
    pub dry_run: bool,
    /// Units that get another node.
    pub plan: Vec<StepView>,
}

/// A unit that gets another node.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ReroutedUnit")]
pub struct StepView {
    /// The unit.
    pub unit: UnitId,
    /// Where it should have been.
    pub from: Option<NodeId>,
    /// Where it should be.
    pub to: NodeId,
    /// Why.
    pub reason: Reason,
}

impl App {
    /// `GET /cluster/assignments`.
    pub fn assignments(&self, query: &AssignmentQuery) -> Vec<AssignmentView> {
        let seen = self.seen();
        let all = seen.units().into_iter();
        let wanted = all.filter(|id| query.unit.as_ref().is_none_or(|unit| unit == id));
        let wanted = wanted.filter(|id| query.kind.is_none_or(|kind| kind == id.kind()));
        let views = wanted.filter_map(|id| self.assignment(&seen, id));
        let views = views.filter(|view| query.state.is_none_or(|state| state == view.state));
        let of = |view: &AssignmentView, node: &NodeId| {
            view.node.as_ref() == Some(node) || view.owner.as_ref() == Some(node)
        };
        views.filter(|view| query.node.as_ref().is_none_or(|node| of(view, node))).collect()
    }

    fn assignment(&self, seen: &Seen, id: UnitId) -> Option<AssignmentView> {
        let unit = seen.unit(&id)?;
        let assignment = seen.snapshot.as_ref().and_then(|snapshot| snapshot.assignment(&id));
        let lanes = self.subscription_of(&id).map(|(subscription, shard)| units::lanes(&subscription, shard));
        Some(AssignmentView {
            kind: id.kind(),
            node: unit.node().cloned(),
            owner: unit.effective.owner().cloned(),
            epoch: unit.effective.epoch(),
            state: seen.state(&unit),
            lanes: lanes.unwrap_or_default(),
            weight: unit.weight,
            reason: assignment.map(|assignment| assignment.reason),
            since: assignment.map(|assignment| assignment.at),
            unit: id,
        })
    }

    /// `GET /cluster/assignments/explain`.
    pub fn explain_unit(&self, id: &UnitId) -> Done<ExplanationView> {
        let unknown = || Failure::NotFound(format!("there is no unit {id}"));
        let seen = self.seen();
        let existing =
            seen.catalog.as_ref().and_then(|catalog| catalog.get(id).cloned()).ok_or_else(unknown)?;
        let first = existing.with.clone().unwrap_or_else(|| id.clone());
        let snapshot = seen.snapshot.as_ref().ok_or_else(unknown)?;
        let view = seen.view.as_ref().ok_or_else(unknown)?;
        let assignment = snapshot.assignment(id);
        let decided = assignment.map(|assignment| Decided {
            at: assignment.at,
            by: assignment.by.clone(),
            leader_epoch: assignment.leader_epoch,
            reason: assignment.reason,
        });
        let history = assignment.map(|assignment| assignment.history.clone()).unwrap_or_default();
        let mut explanation = explain(view, &first, decided, history).ok_or_else(unknown)?;
        if let Some(unit) = seen.unit(id) {
            explanation.state = seen.state(&unit);
            explanation.node = unit.node().cloned();
            explanation.owner = unit.effective.owner().cloned();
            explanation.epoch = unit.effective.epoch();
        }
        if first != *id {
            explanation.explanation = format!("it goes where {first} goes: {}", explanation.explanation);
        }
        explanation.unit = id.clone();
        Ok(explanation)
    }

    /// `POST /cluster/reroute`, on the node that leads. `None`: another node does.
    pub async fn reroute(&self, draft: RerouteDraft) -> Done<Option<RerouteView>> {
        let RerouteDraft { commands, dry_run } = draft;
        let planned = match &self.member {
            Some(member) => match member.reroute(commands, dry_run).await {
                Ok(plan) => Ok(plan),
                Err(Rerouted::NotLeading) => return Ok(None),
                Err(Rerouted::Refused(refusal)) => Err(refusal),
            },
            None => {
                let view = self.seen().view.clone().ok_or(Failure::Stopping)?;
                flare_model::cluster::plan::reroute(&view, &commands)
            }
        };
        let Plan { moves, .. } =
            planned.map_err(|refusal| Failure::Invalid(Invalid::new("commands", refusal)))?;
        let plan = moves.into_iter().map(|step| StepView {
            unit: step.unit,
            from: step.from,
            to: step.to.node,
            reason: step.to.reason,
        });
        // A node by itself has all units already.
        let plan = plan.filter(|step| step.from.as_ref() != Some(&step.to)).collect();
        Ok(Some(RerouteView { dry_run, plan }))
    }
}
