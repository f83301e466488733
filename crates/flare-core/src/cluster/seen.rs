//! What this node knows of the cluster, and since when: as it was listed last, for whoever is asked about it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use flare_model::cluster::keys::{self, Assignment, AssignmentPart, NodeRecord, PROTOCOL, Trouble};
use flare_model::cluster::life::{Claim, Existing, Life, Membership, Registered, Snapshot, Tenure};
use flare_model::cluster::plan::{Effective, Node, Unit, View};
use flare_model::cluster::{NodeId, NodeState, SessionId, UnitId, UnitState, Version};
use flare_model::time::Timestamp;

/// A node that is gone is remembered for so long.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// Clocks may be off by so much before somebody should look.
const TOLERATED: Duration = Duration::from_secs(5);

/// What is known of the cluster.
#[derive(Clone, Default)]
pub struct Seen {
    /// As it was listed last.
    pub snapshot: Option<Arc<Snapshot>>,
    /// When that was, on the monotonic clock and by the wall.
    pub listed_at: Option<(Duration, Timestamp)>,
    /// When the coordinator last answered anything.
    pub heard_at: Option<Duration>,
    /// Units there are.
    pub catalog: Option<Arc<BTreeMap<UnitId, Existing>>>,
    /// What this node does about units.
    pub tenures: Arc<BTreeMap<UnitId, Tenure>>,
    /// The epoch under which this node leads, if it does.
    pub leads: Option<u64>,
    /// What a leader would plan over.
    pub view: Option<Arc<View>>,
    /// This node's session.
    pub session: Option<SessionId>,
    /// Until when that surely lives.
    pub deadline: Option<Duration>,
    /// Since when there is no leader.
    pub leaderless_since: Option<Duration>,
    /// What keeps this node from working, as it said last.
    pub trouble: Option<Trouble>,
    /// Nodes that say that they do not work, or may not, each since when.
    pub troubled: BTreeMap<NodeId, Duration>,
    /// Since when a node hands its units over.
    pub draining_since: Option<Duration>,
    /// Nodes whose wall clock is surely off from this one's.
    pub skewed: BTreeMap<NodeId, Skew>,
    /// Since when two versions of Flare run.
    pub mixed_since: Option<Duration>,
    /// Units that do not run where they should, each since when.
    pub unsettled: Arc<BTreeMap<UnitId, Unsettled>>,
    /// Nodes that are gone.
    pub gone: Arc<BTreeMap<NodeId, Gone>>,
    /// Units were looked at since the catalog changed.
    looked: bool,
}

/// A node by itself.
pub struct Alone {
    /// Its name.
    pub node: NodeId,
    /// What it says of itself.
    pub record: NodeRecord,
    /// All units there are.
    pub units: BTreeMap<UnitId, Existing>,
    /// Under which it serves them.
    pub epoch: u64,
    /// The time.
    pub now: Duration,
    /// The same by the wall.
    pub wall: Timestamp,
}

/// A unit that does not run where it should.
#[derive(Clone, Copy, Debug)]
pub struct Unsettled {
    /// Since when.
    pub since: Duration,
    /// The same by the wall.
    pub at: Timestamp,
    /// How it is.
    pub state: UnitState,
}

/// A wall clock that is off. For people: nothing is decided by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// Ahead of the one here by so much at least, in milliseconds; behind, if it is negative.
    pub millis: i64,
    /// Since when that is known.
    pub since: Duration,
}

/// A node that is gone.
#[derive(Clone, Debug)]
pub struct Gone {
    /// What it said of itself.
    pub record: NodeRecord,
    /// When it was seen last.
    pub seen_at: Timestamp,
    /// When it was missed, on the monotonic clock.
    pub since: Duration,
    /// It had said that it would leave.
    pub left: bool,
}

/// By how much a clock is surely ahead that told this between an earlier moment and now, or behind: a list that came late makes nobody
/// wrong.
fn surely_off(told: i64, earlier: Option<i64>, now: i64) -> i64 {
    match earlier {
        _ if told > now => told - now,
        Some(earlier) if told < earlier => told - earlier,
        _ => 0,
    }
}

impl Seen {
    /// A node by itself: it leads, and has all units.
    pub fn alone(alone: Alone) -> Seen {
        let Alone { node, record, units, epoch, now, wall } = alone;
        let session = SessionId::new("alone");
        let mut snapshot = Snapshot::default();
        let registered = Registered { record, version: Version(1), session: Some(session.clone()) };
        snapshot.leader = Some((node.clone(), Version(1), Some(session.clone())));
        let mut parts: BTreeMap<u8, BTreeMap<UnitId, Assignment>> = BTreeMap::new();
        for (unit, existing) in &units {
            let assignment = Assignment {
                node: node.clone(),
                reason: existing.origin,
                pinned: false,
                home: None,
                at: registered.record.started_at,
                leader_epoch: epoch,
                by: node.clone(),
                history: Vec::new(),
            };
            parts.entry(keys::part_of(unit)).or_default().insert(unit.clone(), assignment);
            let claim = Claim {
                node: node.clone(),
                epoch: Some(epoch),
                parts: existing.parts,
                version: Version(1),
                session: Some(session.clone()),
            };
            snapshot.claims.insert(unit.clone(), claim);
        }
        for (number, units) in parts {
            let (protocol, leader) = (PROTOCOL, node.clone());
            let part = AssignmentPart { protocol, leader, leader_epoch: epoch, units };
            snapshot.parts.insert(number, (Version(1), Some(part)));
        }
        snapshot.nodes.insert(node, registered);
        let mut seen = Seen {
            snapshot: Some(Arc::new(snapshot)),
            listed_at: Some((now, wall)),
            heard_at: Some(now),
            catalog: Some(Arc::new(units)),
            leads: Some(epoch),
            session: Some(session),
            ..Seen::default()
        };
        seen.view = seen.view_alone(epoch).map(Arc::new);
        seen
    }

    fn view_alone(&self, leader_epoch: u64) -> Option<View> {
        let snapshot = self.snapshot.as_ref()?;
        let nodes = snapshot.nodes.iter().map(|(id, found)| {
            (
                id.clone(),
                Node { state: found.record.state, ..Node::live(found.record.weight.max(1), PROTOCOL) },
            )
        });
        let units = self.catalog.iter().flat_map(|units| units.iter());
        let units = units.filter(|(_, existing)| existing.with.is_none());
        let units = units.filter_map(|(id, _)| Some((id.clone(), self.unit(id)?)));
        Some(View {
            leader_epoch,
            protocol: PROTOCOL,
            nodes: nodes.collect(),
            units: units.collect(),
            settles_in: None,
            moves: 0,
        })
    }

    /// How a unit is, and who has it under which epoch.
    pub fn unit(&self, id: &UnitId) -> Option<Unit> {
        let existing = self.catalog.as_ref()?.get(id)?;
        let snapshot = self.snapshot.as_ref()?;
        let effective = snapshot.claims.get(id).map_or(Effective::Nobody, |claim| Effective::Held {
            node: claim.node.clone(),
            epoch: claim.epoch,
        });
        let desired = snapshot.assignment(id).map(|assignment| assignment.desired());
        Some(Unit { weight: existing.weight, origin: existing.origin, desired, effective })
    }

    /// All units there are.
    pub fn units(&self) -> BTreeSet<UnitId> {
        self.catalog.as_ref().map(|units| units.keys().cloned().collect()).unwrap_or_default()
    }

    /// How a unit is.
    pub fn state(&self, unit: &Unit) -> UnitState {
        let Some(snapshot) = &self.snapshot else { return UnitState::Unassigned };
        match unit.state(|node| snapshot.nodes.contains_key(node)) {
            // It is claimed, and not at work before it has an epoch.
            UnitState::Running if unit.effective.epoch().is_none() => UnitState::Assigned,
            state => state,
        }
    }

    /// Who has a unit, and is at work with it, as far as is known.
    pub fn owner(&self, id: &UnitId) -> Option<(NodeId, u64)> {
        let snapshot = self.snapshot.as_ref()?;
        let claim = snapshot.claims.get(id)?;
        let there = snapshot.nodes.contains_key(&claim.node);
        Some((claim.node.clone(), claim.epoch?)).filter(|_| there)
    }

    /// The catalog has these units.
    pub(super) fn has_units(&mut self, units: Arc<BTreeMap<UnitId, Existing>>) {
        (self.catalog, self.looked) = (Some(units), false);
    }

    /// Takes over what the life of the node says by now.
    pub(super) fn follow(&mut self, life: &Life, now: Duration, wall: Timestamp, lease: Duration) {
        (self.leads, self.trouble) = (life.leads(), life.trouble());
        (self.session, self.deadline) = match life.membership() {
            Membership::In(sitting) => (Some(sitting.session.clone()), Some(sitting.deadline)),
            _ => (None, None),
        };
        if *self.tenures != *life.tenures() {
            self.tenures = Arc::new(life.tenures().clone());
        }
        let listed = life.seen();
        let same = match (listed, &self.snapshot) {
            (Some(listed), Some(known)) => Arc::ptr_eq(listed, known),
            (None, _) => true,
            _ => false,
        };
        if !same && let Some(listed) = listed {
            self.remember_gone(listed, now, wall);
            self.look_at_nodes(listed, now);
            self.look_at_clocks(listed, now, wall);
            self.snapshot = Some(listed.clone());
            self.listed_at = Some((now, wall));
        }
        let led = self.snapshot.as_ref().is_some_and(|snapshot| snapshot.leader.is_some());
        let fresh = self.listed_at.is_some_and(|(at, _)| now < at + lease * 2);
        self.leaderless_since = match (led && fresh, self.leaderless_since) {
            (true, _) => None,
            (false, since) => Some(since.unwrap_or(now)),
        };
        if !same || !self.looked {
            self.looked = true;
            self.view = life.view_as_seen().map(Arc::new);
            self.look_at_units(now, wall);
        }
    }

    fn look_at_nodes(&mut self, listed: &Snapshot, now: Duration) {
        let records = || listed.nodes.values().map(|found| &found.record);
        let drains = records().any(|record| record.state == NodeState::Draining);
        let troubled = listed.nodes.iter().filter(|(_, found)| found.record.trouble.is_some());
        let since = |id: &NodeId| self.troubled.get(id).copied().unwrap_or(now);
        self.troubled = troubled.map(|(id, _)| (id.clone(), since(id))).collect();
        self.draining_since = drains.then(|| self.draining_since.unwrap_or(now));
        let versions: BTreeSet<&str> = records().map(|record| record.version.as_str()).collect();
        self.mixed_since = (versions.len() > 1).then(|| self.mixed_since.unwrap_or(now));
    }

    /// What others wrote of their clocks since the last list they wrote between that and now.
    fn look_at_clocks(&mut self, listed: &Snapshot, now: Duration, wall: Timestamp) {
        let earlier = self.listed_at.map(|(at, then)| {
            let ago = now.saturating_sub(at).as_millis() as i64;
            then.millis().min(wall.millis() - ago)
        });
        self.skewed.retain(|id, _| listed.nodes.contains_key(id));
        for (id, found) in &listed.nodes {
            let before = self.snapshot.as_ref().and_then(|before| before.nodes.get(id));
            let Some(told) = found.record.clock.filter(|_| found.session != self.session) else { continue };
            if before.is_some_and(|before| before.record.clock == Some(told)) {
                continue;
            }
            let millis = surely_off(told.millis(), earlier.filter(|_| before.is_some()), wall.millis());
            if millis.unsigned_abs() < TOLERATED.as_millis() as u64 {
                self.skewed.remove(id);
            } else {
                let since = self.skewed.get(id).map_or(now, |known| known.since);
                self.skewed.insert(id.clone(), Skew { millis, since });
            }
        }
    }

    fn remember_gone(&mut self, listed: &Snapshot, now: Duration, wall: Timestamp) {
        let mut gone = (*self.gone).clone();
        for (id, registered) in self.snapshot.iter().flat_map(|before| &before.nodes) {
            if !listed.nodes.contains_key(id) {
                let left = matches!(registered.record.state, NodeState::Draining | NodeState::Drained);
                let record = registered.record.clone();
                gone.insert(id.clone(), Gone { record, seen_at: wall, since: now, left });
            }
        }
        gone.retain(|id, gone| now < gone.since + REMEMBERED && !listed.nodes.contains_key(id));
        self.gone = Arc::new(gone);
    }

    fn look_at_units(&mut self, now: Duration, at: Timestamp) {
        let mut unsettled = BTreeMap::new();
        let ids: Vec<UnitId> = self.catalog.iter().flat_map(|units| units.keys().cloned()).collect();
        for id in ids {
            let state = match self.unit(&id) {
                Some(unit) => self.state(&unit),
                None => UnitState::Unassigned,
            };
            if state != UnitState::Running {
                let since = self.unsettled.get(&id).map_or((now, at), |known| (known.since, known.at));
                unsettled.insert(id, Unsettled { since: since.0, at: since.1, state });
            }
        }
        self.unsettled = Arc::new(unsettled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(clock: i64) -> Arc<Snapshot> {
        let record = format!(
            r#"{{"protocol":1,"address":"","state":"live","weight":1,"eligible":true,"version":"","sha":"",
             "startedAt":"2026-01-01T00:00:00Z","clock":"{}"}}"#,
            Timestamp::from_millis(clock)
        );
        let record: NodeRecord = serde_json::from_str(&record).expect("a record");
        let mut snapshot = Snapshot::default();
        let session = Some(SessionId::new("theirs"));
        snapshot.nodes.insert(NodeId::new("b"), Registered { record, version: Version(1), session });
        Arc::new(snapshot)
    }

    #[test]
    fn a_clock_that_is_off_is_known_by_what_it_said_between_two_lists() {
        let mut seen = Seen::default();
        let mut look = |second: u64, clock: i64| {
            let (now, wall) = (Duration::from_secs(second), Timestamp::from_millis(second as i64 * 1000));
            let snapshot = listed(clock);
            seen.look_at_clocks(&snapshot, now, wall);
            (seen.snapshot, seen.listed_at) = (Some(snapshot), Some((now, wall)));
            seen.skewed.get(&NodeId::new("b")).map(|skew| (skew.millis, skew.since.as_secs()))
        };
        assert_eq!(look(100, 10_000), None, "nobody knows when it was written");
        assert_eq!(look(160, 104_000), None, "it may have been written long before this list");
        assert_eq!(look(165, 172_000), Some((7_000, 165)), "it says what is yet to come");
        assert_eq!(look(170, 172_000), Some((7_000, 165)), "it said nothing since");
        assert_eq!(look(175, 190_000), Some((15_000, 165)));
        assert_eq!(look(180, 168_000), Some((-7_000, 165)), "behind what it was at the last list");
        assert_eq!(look(185, 182_000), None);
    }
}
