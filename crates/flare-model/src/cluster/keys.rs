//! The keys that nodes keep with the coordinator, below the name of the cluster, and what stands in them. Values are JSON;
//! each says the protocol in which it is written. A reader ignores members that it does not know, and does not touch what is
//! written in a newer protocol than its own.
//!
//! | key | in a session | value |
//! |---|---|---|
//! | `nodes/<node>` | its node's | [`NodeRecord`] |
//! | `leader` | the leader's | [`LeaderRecord`] |
//! | `assignments/<part>` | no | [`AssignmentPart`] |
//! | `claims/<unit>` | the owner's | [`ClaimRecord`] |
//!
//! Assignments are in a fixed number of parts, by a hash of the unit. A new leader writes every part under its own epoch, each by its
//! version; from then on whatever an earlier leader still has under way finds another version and writes nothing. So an assignment depends on
//! the epoch of its leader although the contract compares one key at a time.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::plan::Desired;
use super::plan::explain::Moved;
use super::{NodeId, NodeState, Reason, UnitId};
use crate::time::Timestamp;

/// The protocol of this version of Flare.
pub const PROTOCOL: u32 = 1;

/// Below it are the nodes.
pub const NODES: &str = "nodes/";
/// The leader.
pub const LEADER: &str = "leader";
/// Below it are the parts of the assignments.
pub const ASSIGNMENTS: &str = "assignments/";
/// Below it are the claims.
pub const CLAIMS: &str = "claims/";

/// In so many parts are the assignments. Fixed: a unit has to be found where it was written.
pub const PARTS: u8 = 32;

/// So many moves of a unit are remembered.
pub const HISTORY: usize = 5;

/// The key of a node.
pub fn of_node(node: &NodeId) -> String {
    format!("{NODES}{node}")
}

/// The key of a part of the assignments.
pub fn of_part(part: u8) -> String {
    format!("{ASSIGNMENTS}{part:02}")
}

/// The key of a claim.
pub fn of_claim(unit: &UnitId) -> String {
    format!("{CLAIMS}{unit}")
}

/// How the keys of all claims begin that are on parts of the same thing as a unit.
pub fn of_claims_beside(unit: &UnitId) -> String {
    format!("{CLAIMS}{}/{}/", unit.kind().as_str(), unit.id())
}

/// The part of the assignments in which a unit is: FNV-1a of its name, which never changes.
pub fn part_of(unit: &UnitId) -> u8 {
    let hash = unit.to_string().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    ((hash ^ (hash >> 32)) % u64::from(PARTS)) as u8
}

/// How much a node has to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "NodeLoad")]
pub struct Load {
    /// The share of one core per delivery thread that it used over the last minute.
    pub cpu: f64,
    /// Deliveries in a second.
    pub deliveries_per_second: f64,
    /// Changes accepted in a second.
    pub accepted_per_second: f64,
    /// Documents that clients of its units have yet to be told of.
    pub backlog: u64,
    /// Connections to clients.
    pub connections: u64,
}

/// A node, as it registers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRecord {
    /// In which this is written, and the newest that it reads.
    pub protocol: u32,
    /// How the others reach it.
    pub address: String,
    /// `live`, `draining` or `drained`: what it says of itself.
    pub state: NodeState,
    /// How much it takes.
    pub weight: u32,
    /// Whether it may lead.
    pub eligible: bool,
    /// Its version of Flare.
    pub version: String,
    /// The commit that it was built from.
    pub sha: String,
    /// When it started, by its own clock.
    pub started_at: Timestamp,
    /// How much it has to do.
    #[serde(default)]
    pub load: Load,
    /// It has too much to do.
    #[serde(default)]
    pub gives_back: bool,
    /// What its wall clock said when it last described itself. For people: nothing is decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Timestamp>,
    /// It lives, and does not work, or may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
}

/// What keeps a node from working although it renews its lease, as it noticed itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// What.
    pub ailment: Ailment,
    /// It is certain: its units go to nodes without any trouble. Otherwise it keeps what it has, and gets no more.
    pub stuck: bool,
}

/// What may keep a node from working.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ailment {
    /// The store has answered nothing that was read.
    Store,
    /// What there is to record does not become durable.
    Records,
    /// The store takes nothing that is written.
    Writes,
    /// A delivery thread does not answer.
    Thread,
    /// What looks after all that says nothing.
    Silence,
    /// Something that only a newer version of Flare knows.
    #[serde(other)]
    Other,
}

impl Ailment {
    /// Whether it is the store that fails the node.
    pub fn is_of_store(self) -> bool {
        matches!(self, Ailment::Store | Ailment::Records | Ailment::Writes)
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Ailment::Store => "the store does not answer it",
            Ailment::Records => "what it has to record does not become durable",
            Ailment::Writes => "the store takes nothing that it writes",
            Ailment::Thread => "one of its delivery threads does not answer",
            Ailment::Silence => "it hears nothing of itself",
            Ailment::Other => "something that a newer version of Flare knows",
        }
    }
}

/// The leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaderRecord {
    /// In which this is written.
    pub protocol: u32,
    /// The node that leads.
    pub node: NodeId,
}

/// Who has a unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRecord {
    /// In which this is written.
    pub protocol: u32,
    /// The node that has it.
    pub node: NodeId,
    /// The epoch under which it works, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Into how many parts that is cut which the unit is a part of: whoever cuts it otherwise has to wait.
    #[serde(default = "whole")]
    pub parts: u32,
}

fn whole() -> u32 {
    1
}

/// Some of the assignments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssignmentPart {
    /// In which this is written.
    pub protocol: u32,
    /// The node that wrote it.
    pub leader: NodeId,
    /// Its epoch as a leader.
    pub leader_epoch: u64,
    /// By unit.
    pub units: BTreeMap<UnitId, Assignment>,
}

/// Where a unit should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    /// On this node.
    pub node: NodeId,
    /// Because of this.
    pub reason: Reason,
    /// A user put it there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Where it goes back to, if there is a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<NodeId>,
    /// When it was decided, by the clock of the leader. For people.
    pub at: Timestamp,
    /// The leader's epoch then.
    pub leader_epoch: u64,
    /// The leader then.
    pub by: NodeId,
    /// Where it was before, the newest first. Bound: [`HISTORY`]; the oldest goes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Moved>,
}

impl Assignment {
    /// As the planner has it.
    pub fn desired(&self) -> Desired {
        Desired { node: self.node.clone(), reason: self.reason, pinned: self.pinned, home: self.home.clone() }
    }
}

/// Why a value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A newer version of Flare wrote it.
    #[error("it is written in protocol {0}, newer than {PROTOCOL}")]
    Newer(u32),
    /// It makes no sense.
    #[error("it is not what this key has: {0}")]
    Nonsense(String),
}

/// Reads a value.
pub fn read<T: DeserializeOwned>(value: &[u8]) -> Result<T, Unreadable> {
    #[derive(Deserialize)]
    struct Envelope {
        protocol: u32,
    }
    let nonsense = |error: serde_json::Error| Unreadable::Nonsense(error.to_string());
    let envelope: Envelope = serde_json::from_slice(value).map_err(nonsense)?;
    if envelope.protocol > PROTOCOL {
        return Err(Unreadable::Newer(envelope.protocol));
    }
    serde_json::from_slice(value).map_err(nonsense)
}

/// Writes a value.
pub fn write(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("these types have nothing that JSON cannot say")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record that could not be read would be a node that is not there.
    #[test]
    fn trouble_of_a_newer_version_is_trouble() {
        let trouble: Trouble = serde_json::from_str(r#"{"ailment":"moths","stuck":true}"#).unwrap();
        assert_eq!(trouble, Trouble { ailment: Ailment::Other, stuck: true });
    }

    #[test]
    fn a_value_is_read_as_it_was_written_and_a_newer_one_is_not_touched() {
        let claim = ClaimRecord { protocol: PROTOCOL, node: NodeId::new("a"), epoch: Some(41), parts: 3 };
        assert_eq!(read(&write(&claim)), Ok(claim));
        let more = br#"{"protocol":1,"node":"a","what":"ever"}"#;
        assert_eq!(
            read(more),
            Ok(ClaimRecord { protocol: 1, node: NodeId::new("a"), epoch: None, parts: 1 })
        );
        assert_eq!(read::<ClaimRecord>(br#"{"protocol":2,"owner":"a"}"#), Err(Unreadable::Newer(2)));
        assert!(matches!(read::<ClaimRecord>(b"{}"), Err(Unreadable::Nonsense(_))));
        assert!(matches!(read::<ClaimRecord>(b"\xff"), Err(Unreadable::Nonsense(_))));
    }

    /// A unit is looked for where another version of Flare wrote it.
    #[test]
    fn the_part_of_a_unit_never_changes() {
        let part = |text: &str| part_of(&text.parse().unwrap());
        let parts = ["subscription/sub_x/0", "subscription/sub_x/1", "sweeper/retention/0"].map(part);
        assert_eq!(parts, [8, 7, 22]);
        let unit: UnitId = "subscription/sub_x/0".parse().unwrap();
        assert!(of_claim(&unit).starts_with(&of_claims_beside(&unit)));
        assert!(!of_claim(&"subscription/sub_xy/0".parse().unwrap()).starts_with(&of_claims_beside(&unit)));
        let many: std::collections::BTreeSet<u8> =
            (0..1000).map(|number| part(&format!("subscription/sub_{number}/0"))).collect();
        assert_eq!(many.len(), usize::from(PARTS), "all parts are used");
    }
}
