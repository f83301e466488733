//! Units of work: what one node has at a time. `subscription/sub_9w3k…/0` is the first shard of a subscription.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// What kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UnitKind {
    /// A shard of a subscription.
    Subscription,
    /// A shard of a producer.
    Producer,
    /// A consumer, or a part of its source.
    Consumer,
    /// What keeps house for all.
    Sweeper,
    /// A lane, where the store cannot order commits of several writers.
    Sequencer,
}

impl UnitKind {
    /// All of them.
    pub const ALL: [UnitKind; 5] = [
        UnitKind::Subscription,
        UnitKind::Producer,
        UnitKind::Consumer,
        UnitKind::Sweeper,
        UnitKind::Sequencer,
    ];

    /// As users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            UnitKind::Subscription => "subscription",
            UnitKind::Producer => "producer",
            UnitKind::Consumer => "consumer",
            UnitKind::Sweeper => "sweeper",
            UnitKind::Sequencer => "sequencer",
        }
    }
}

/// A unit: `<kind>/<id>/<part>`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct UnitId {
    kind: UnitKind,
    id: Arc<str>,
    part: Arc<str>,
}

/// Why a text names no unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no unit; write <kind>/<id>/<part>, as in \"subscription/sub_9w3kq0v7d1m5c2xj4f8t/0\"")]
pub struct NoUnit(String);

impl UnitId {
    /// A part of something. Neither id nor part has a `/` in it.
    pub fn new(kind: UnitKind, id: impl Into<Arc<str>>, part: impl Into<Arc<str>>) -> UnitId {
        UnitId { kind, id: id.into(), part: part.into() }
    }

    /// What kind of work it is.
    pub fn kind(&self) -> UnitKind {
        self.kind
    }

    /// Of what it is a part.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Which part: the shard, the lane, or what a source calls its parts.
    pub fn part(&self) -> &str {
        &self.part
    }
}

impl fmt::Display for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind.as_str(), self.id, self.part)
    }
}

impl fmt::Debug for UnitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for UnitId {
    type Err = NoUnit;

    fn from_str(text: &str) -> Result<UnitId, NoUnit> {
        let refused = || NoUnit(text.to_owned());
        let mut parts = text.split('/');
        let (Some(kind), Some(id), Some(part), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(refused());
        };
        let kind = UnitKind::ALL.into_iter().find(|known| known.as_str() == kind).ok_or_else(refused)?;
        if id.is_empty() || part.is_empty() {
            return Err(refused());
        }
        Ok(UnitId::new(kind, id, part))
    }
}

impl From<UnitId> for String {
    fn from(unit: UnitId) -> String {
        unit.to_string()
    }
}

impl TryFrom<String> for UnitId {
    type Error = NoUnit;

    fn try_from(text: String) -> Result<UnitId, NoUnit> {
        text.parse()
    }
}

impl JsonSchema for UnitId {
    fn schema_name() -> Cow<'static, str> {
        "Unit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(subscription|producer|consumer|sweeper|sequencer)/[^/]+/[^/]+$",
            "description": "A unit of work: its kind, what it is a part of, and which part.",
            "examples": ["subscription/sub_9w3kq0v7d1m5c2xj4f8t/0"],
        })
    }
}

/// How a unit fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UnitState {
    /// No node has been chosen yet.
    Unassigned,
    /// A node was chosen and has not claimed it yet.
    Assigned,
    /// The node that should have it has it.
    Running,
    /// The node that has it should not have it any more, and finishes what is in flight.
    Draining,
    /// The node that had it is gone.
    Orphaned,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_read_as_it_is_written() {
        for text in ["subscription/sub_x/0", "consumer/con_x/shardId-000000000001", "sweeper/retention/0"] {
            let unit: UnitId = text.parse().unwrap();
            assert_eq!(unit.to_string(), text);
            assert_eq!(serde_json::to_string(&unit).unwrap(), format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<UnitId>(&format!("\"{text}\"")).unwrap(), unit);
        }
        for text in [
            "",
            "subscription",
            "subscription/x",
            "subscription//0",
            "subscription/x/",
            "other/x/0",
            "sweeper/a/b/c",
        ] {
            assert!(text.parse::<UnitId>().is_err(), "{text}");
        }
    }
}
