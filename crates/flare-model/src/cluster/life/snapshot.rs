//! Everything that the coordinator has, as it was listed. Keys with their values come in; what they mean goes out.

use std::collections::BTreeMap;

use crate::cluster::keys::{self, AssignmentPart, ClaimRecord, LeaderRecord, NodeRecord, Unreadable};
use crate::cluster::{NodeId, SessionId, UnitId, Version};

/// A key as it was listed.
#[derive(Clone, Copy, Debug)]
pub struct Keyed<'a> {
    /// Its name, below the name of the cluster.
    pub key: &'a str,
    /// What stands there.
    pub value: &'a [u8],
    /// Its version.
    pub version: Version,
    /// The session that it is in.
    pub session: Option<&'a SessionId>,
}

/// A node that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Registered {
    /// What it says of itself.
    pub record: NodeRecord,
    /// Of this version.
    pub version: Version,
    /// In this session.
    pub session: Option<SessionId>,
}

/// A unit that is claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// By this node.
    pub node: NodeId,
    /// Under this epoch, once it has one.
    pub epoch: Option<u64>,
    /// With that which it is a part of cut into so many.
    pub parts: u32,
    /// Of this version.
    pub version: Version,
    /// In this session.
    pub session: Option<SessionId>,
}

/// Everything that the coordinator has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The nodes that are there.
    pub nodes: BTreeMap<NodeId, Registered>,
    /// The leader, the version of its key, and its session.
    pub leader: Option<(NodeId, Version, Option<SessionId>)>,
    /// The assignments, by part. A part that cannot be read is there by its version.
    pub parts: BTreeMap<u8, (Version, Option<AssignmentPart>)>,
    /// The claims.
    pub claims: BTreeMap<UnitId, Claim>,
    /// Something is written in a newer protocol: whoever cannot read it must not plan over it.
    pub newer: bool,
    /// Keys whose values make no sense.
    pub nonsense: Vec<String>,
}

impl Snapshot {
    /// Reads what was listed. Keys of which nothing is known are passed over.
    pub fn read<'a>(listed: impl IntoIterator<Item = Keyed<'a>>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for keyed in listed {
            if let Err(unreadable) = snapshot.take(keyed) {
                match unreadable {
                    Unreadable::Newer(_) => snapshot.newer = true,
                    Unreadable::Nonsense(_) => snapshot.nonsense.push(keyed.key.to_owned()),
                }
            }
        }
        snapshot
    }

    fn take(&mut self, Keyed { key, value, version, session }: Keyed<'_>) -> Result<(), Unreadable> {
        let session = session.cloned();
        if let Some(node) = key.strip_prefix(keys::NODES) {
            let record: NodeRecord = keys::read(value)?;
            self.nodes.insert(NodeId::new(node), Registered { record, version, session });
        } else if key == keys::LEADER {
            let record: LeaderRecord = keys::read(value)?;
            self.leader = Some((record.node, version, session));
        } else if let Some(part) = key.strip_prefix(keys::ASSIGNMENTS) {
            let Ok(part) = part.parse() else { return Ok(()) };
            let read = keys::read(value);
            self.parts.insert(part, (version, read.as_ref().ok().cloned()));
            read.map(|_: AssignmentPart| ())?;
        } else if let Some(unit) = key.strip_prefix(keys::CLAIMS) {
            let Ok(unit) = unit.parse() else { return Ok(()) };
            let ClaimRecord { node, epoch, parts, .. } = keys::read(value)?;
            self.claims.insert(unit, Claim { node, epoch, parts, version, session });
        }
        Ok(())
    }

    /// Where a unit should be.
    pub fn assignment(&self, unit: &UnitId) -> Option<&keys::Assignment> {
        self.parts.get(&keys::part_of(unit))?.1.as_ref()?.units.get(unit)
    }

    /// All units that should be somewhere.
    pub fn assignments(&self) -> impl Iterator<Item = (&UnitId, &keys::Assignment)> {
        self.parts.values().filter_map(|(_, part)| part.as_ref()).flat_map(|part| &part.units)
    }
}
