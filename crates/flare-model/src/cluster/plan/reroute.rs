//! What a user asks to be moved. Commands and a view come in; a plan that follows them, or what is wrong with them, goes out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scale::may_take;
use super::{Desired, Move, NodeId, NodeState, Plan, Reason, UnitId, View, plan};

/// One thing to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "RerouteCommand")]
pub enum Command {
    /// Moves a unit, and keeps it there until that node goes or drains, or it is unpinned.
    Move {
        /// The unit.
        unit: UnitId,
        /// Where to.
        node: NodeId,
    },
    /// Lets a unit be moved again.
    Unpin {
        /// The unit.
        unit: UnitId,
    },
}

/// Why a command cannot be followed. The message is shown to API users as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such unit.
    #[error("there is no unit `{0}`")]
    UnknownUnit(UnitId),
    /// There is no such node.
    #[error("there is no node `{0}`")]
    UnknownNode(NodeId),
    /// It is there and takes none.
    #[error("the node `{node}` takes no units: {why}")]
    TakesNone {
        /// The node.
        node: NodeId,
        /// Why.
        why: &'static str,
    },
}

/// Follows the commands, in order, all or none; with none it plans at once, without waiting for the members to settle. The moves
/// that were asked for come first; those that follow from them, and what was due anyway, after them.
pub fn reroute(view: &View, commands: &[Command]) -> Result<Plan, Refusal> {
    let mut after = view.clone();
    after.settles_in = after.settles_in.filter(|_| !commands.is_empty());
    let mut asked: Vec<Move> = Vec::new();
    for command in commands {
        let (id, node) = match command {
            Command::Move { unit, node } => (unit, Some(node)),
            Command::Unpin { unit } => (unit, None),
        };
        let unit = after.units.get_mut(id).ok_or_else(|| Refusal::UnknownUnit(id.clone()))?;
        let to = match (node, &unit.desired) {
            (Some(node), _) => {
                takes(view, node)?;
                Desired { node: node.clone(), reason: Reason::Reroute, pinned: true, home: None }
            }
            (None, Some(desired)) => Desired { pinned: false, ..desired.clone() },
            (None, None) => continue,
        };
        let from = unit.node().cloned();
        if unit.desired.as_ref() != Some(&to) {
            unit.desired = Some(to.clone());
            asked.retain(|earlier| earlier.unit != *id);
            asked.push(Move { unit: id.clone(), from, to });
        }
    }
    let mut follows = plan(&after);
    // What balance would take away again at once is not what the user asked for: pinned units stay, so this is only
    // for units that were unpinned, whose next move is the one that counts.
    asked.retain(|asked| follows.moves.iter().all(|moved| moved.unit != asked.unit));
    asked.append(&mut follows.moves);
    Ok(Plan { moves: asked, ..follows })
}

fn takes(view: &View, id: &NodeId) -> Result<(), Refusal> {
    let node = view.nodes.get(id).filter(|node| node.state != NodeState::Gone);
    let node = node.ok_or_else(|| Refusal::UnknownNode(id.clone()))?;
    if may_take(view, node) {
        return Ok(());
    }
    let why = match node.state {
        NodeState::Draining | NodeState::Drained => "it is drained",
        NodeState::Suspect => "it missed a renewal",
        _ if node.trouble.is_some() => "it does not work, or may not",
        _ if node.weight == 0 => "its weight is 0",
        _ => "it cannot read what the leader writes",
    };
    Err(Refusal::TakesNone { node: id.clone(), why })
}
