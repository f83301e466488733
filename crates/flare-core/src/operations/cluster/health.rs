//! `/cluster/health`: whether there is a leader, and every unit runs; and if not, why and since when.

use std::sync::Arc;
use std::time::Duration;

use flare_model::cluster::{NodeState, UnitState};
use flare_model::duration::HumanDuration;
use flare_model::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cluster::Seen;
use crate::operations::App;

/// How long the store may take to say that it is there.
const STORE: Duration = Duration::from_secs(1);

/// How often it is looked at while somebody waits.
const LOOK: Duration = Duration::from_millis(50);

/// How a cluster fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterStatus")]
pub enum Colour {
    /// There is no leader, or no store, or a unit has not run for long.
    Red,
    /// Something is under way.
    Yellow,
    /// There is a leader, and every unit runs.
    Green,
}

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub struct HealthQuery {
    /// At least this.
    pub wait: Option<Colour>,
    /// For so long.
    pub timeout: Duration,
}

/// `GET /cluster/health`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterHealth")]
pub struct HealthView {
    /// How it fares, as this node sees it.
    pub status: Colour,
    /// Why it is not green.
    pub reasons: Vec<ReasonView>,
    /// The name of the cluster.
    pub name: String,
    /// The node that leads.
    pub leader: Option<String>,
    /// Under which epoch it does.
    pub leader_epoch: Option<u64>,
    /// Nodes.
    pub nodes: NodesView,
    /// Units.
    pub units: UnitsView,
    /// Where everything is kept.
    pub store: PartView,
    /// Where nodes find each other.
    pub coordinator: PartView,
}

/// Why a cluster is not green.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterReason")]
pub struct ReasonView {
    /// What.
    pub code: Code,
    /// The same in words.
    pub detail: String,
    /// Since when, by the clock of this node.
    pub since: Timestamp,
}

/// What may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterReasonCode")]
pub enum Code {
    /// Nobody leads.
    NoLeader,
    /// A node is gone without a word.
    NodeGone,
    /// Nodes that had units are gone.
    UnitsOrphaned,
    /// Units are on their way.
    UnitsMoving,
    /// A node hands its units over.
    Draining,
    /// The store does not answer.
    StoreUnreachable,
    /// The coordinator does not answer.
    CoordinatorUnreachable,
    /// Two versions of Flare run.
    MixedVersions,
    /// The wall clocks of two nodes are seconds apart. Nothing depends on them but what people read.
    ClockSkew,
}

/// How many nodes there are.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterNodes")]
pub struct NodesView {
    /// That are members.
    pub total: u64,
    /// That take units.
    pub live: u64,
    /// That hand theirs over, or have.
    pub draining: u64,
}

/// How many units there are, by how they fare.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterUnits")]
pub struct UnitsView {
    /// All.
    pub total: u64,
    /// Served where they should be.
    pub running: u64,
    /// Given to a node that has not claimed them yet.
    pub assigned: u64,
    /// Served by a node that is to hand them over.
    pub draining: u64,
    /// Of nodes that are gone.
    pub orphaned: u64,
    /// Given to nobody.
    pub unassigned: u64,
}

/// Something that the node depends on.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterPart")]
pub struct PartView {
    /// Which it is.
    pub engine: String,
    /// Whether it answers.
    pub reachable: bool,
}

impl App {
    /// `GET /cluster/health`, and whether what was waited for has come.
    pub async fn health(&self, query: HealthQuery) -> (HealthView, bool) {
        let until = self.clock.monotonic() + query.timeout;
        loop {
            let health = self.health_now().await;
            let reached = query.wait.is_none_or(|wanted| health.status >= wanted);
            if reached || self.clock.monotonic() >= until || self.stop.is_cancelled() {
                return (health, reached);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// How the cluster fares.
    pub async fn health_now(&self) -> HealthView {
        let asked = tokio::time::timeout(STORE, self.store.catalog.version());
        let reachable = matches!(asked.await, Ok(Ok(_)));
        let lost_since = self.store_seen.asked(reachable, self.clock.monotonic());
        let seen = self.seen();
        let (now, lease) = (self.clock.monotonic(), self.config.cluster.lease);
        let heard = seen.heard_at.is_some_and(|at| now < at + lease);
        let store = PartView { engine: self.about.engines.store.to_owned(), reachable };
        let coordinator = PartView { engine: self.about.engines.cluster.to_owned(), reachable: heard };
        let units = count_units(&seen);
        let nodes = count_nodes(&seen);
        let mut looking = Looking { app: self, seen: &seen, status: Colour::Green, reasons: Vec::new() };
        looking.at_parts(&store, lost_since, &coordinator);
        looking.at_leader();
        looking.at_nodes(&nodes);
        looking.at_units(&units);
        let Looking { status, reasons, .. } = looking;
        let leader =
            seen.snapshot.as_ref().and_then(|snapshot| snapshot.leader.clone()).map(|(node, ..)| node);
        HealthView {
            status,
            reasons,
            name: self.config.cluster.name.as_str().to_owned(),
            leader_epoch: leader.as_ref().and_then(|_| leader_epoch(&seen)),
            leader: leader.map(|node| node.to_string()),
            nodes,
            units,
            store,
            coordinator,
        }
    }
}

/// The epoch of the leader, as far as it has written anything.
pub(super) fn leader_epoch(seen: &Seen) -> Option<u64> {
    let parts = seen.snapshot.iter().flat_map(|snapshot| snapshot.parts.values());
    seen.leads.or_else(|| parts.filter_map(|(_, part)| Some(part.as_ref()?.leader_epoch)).max())
}

pub(super) fn count_units(seen: &Seen) -> UnitsView {
    let total = seen.catalog.as_ref().map_or(0, |catalog| catalog.len() as u64);
    let mut units = UnitsView { total, ..UnitsView::default() };
    for unsettled in seen.unsettled.values() {
        *match unsettled.state {
            UnitState::Running => continue,
            UnitState::Assigned => &mut units.assigned,
            UnitState::Draining => &mut units.draining,
            UnitState::Orphaned => &mut units.orphaned,
            UnitState::Unassigned => &mut units.unassigned,
        } += 1;
    }
    units.running = units.total - units.assigned - units.draining - units.orphaned - units.unassigned;
    units
}

fn count_nodes(seen: &Seen) -> NodesView {
    let mut nodes = NodesView::default();
    for found in seen.snapshot.iter().flat_map(|snapshot| snapshot.nodes.values()) {
        nodes.total += 1;
        match found.record.state {
            NodeState::Live if found.record.trouble.is_some() => {}
            NodeState::Live => nodes.live += 1,
            NodeState::Draining | NodeState::Drained => nodes.draining += 1,
            NodeState::Suspect | NodeState::Gone => {}
        }
    }
    nodes
}

/// The cluster, looked at from all sides.
struct Looking<'a> {
    app: &'a App,
    seen: &'a Arc<Seen>,
    status: Colour,
    reasons: Vec<ReasonView>,
}

impl Looking<'_> {
    fn because(&mut self, status: Colour, code: Code, detail: String, since: Duration) {
        self.status = self.status.min(status);
        let ago = self.app.clock.monotonic().saturating_sub(since);
        let since = Timestamp::from_millis(self.app.clock.now().millis() - ago.as_millis() as i64);
        self.reasons.push(ReasonView { code, detail, since });
    }

    fn at_parts(&mut self, store: &PartView, lost_since: Option<Duration>, coordinator: &PartView) {
        if let Some(since) = lost_since {
            let detail = format!("{} does not answer", store.engine);
            self.because(Colour::Red, Code::StoreUnreachable, detail, since);
        }
        if !coordinator.reachable {
            let since = self.seen.heard_at.unwrap_or_default();
            let detail = format!("{} does not answer", coordinator.engine);
            self.because(Colour::Red, Code::CoordinatorUnreachable, detail, since);
        }
    }

    fn at_leader(&mut self) {
        let (now, lease) = (self.app.clock.monotonic(), self.app.config.cluster.lease);
        let led = self.seen.snapshot.as_ref().is_some_and(|snapshot| snapshot.leader.is_some());
        if let Some(since) = self.seen.leaderless_since.or((!led).then_some(now)) {
            let status = if now > since + lease { Colour::Red } else { Colour::Yellow };
            self.because(status, Code::NoLeader, "nobody leads".to_owned(), since);
        }
    }

    fn at_nodes(&mut self, nodes: &NodesView) {
        let now = self.app.clock.monotonic();
        // One that has handed all of them over is where somebody wants it to be: nothing is under way.
        let there = self.seen.snapshot.iter().flat_map(|snapshot| snapshot.nodes.values());
        let draining = there.filter(|found| found.record.state == NodeState::Draining).count();
        if draining > 0 {
            let detail = format!("{draining} of {} nodes hand their units over", nodes.total);
            self.because(Colour::Yellow, Code::Draining, detail, self.seen.draining_since.unwrap_or(now));
        }
        let lease = self.app.config.cluster.lease;
        let missed: Vec<_> =
            self.seen.gone.iter().filter(|(_, gone)| !gone.left && now < gone.since + lease).collect();
        if let Some((id, gone)) = missed.first() {
            let (detail, since) = (format!("node {id} is gone"), gone.since);
            self.because(Colour::Yellow, Code::NodeGone, detail, since);
        }
        self.at_trouble();
        let there = self.seen.snapshot.iter().flat_map(|snapshot| snapshot.nodes.values());
        let mut versions: Vec<String> = there.map(|found| found.record.version.clone()).collect();
        versions.sort();
        versions.dedup();
        if versions.len() > 1 {
            let detail = format!("versions {} run", versions.join(" and "));
            self.because(Colour::Yellow, Code::MixedVersions, detail, self.seen.mixed_since.unwrap_or(now));
        }
        for (id, skew) in &self.seen.skewed.clone() {
            let by = HumanDuration(Duration::from_millis(skew.millis.unsigned_abs()));
            let way = if skew.millis > 0 { "ahead of" } else { "behind" };
            let detail = format!("the clock of node {id} is at least {by} {way} that of this one");
            self.because(Colour::Yellow, Code::ClockSkew, detail, skew.since);
        }
    }

    /// Nodes that live and do not work. Once others have what they had all runs, as after a node that is gone.
    fn at_trouble(&mut self) {
        let (now, lease) = (self.app.clock.monotonic(), self.app.config.cluster.lease);
        let Some(snapshot) = self.seen.snapshot.clone() else { return };
        for (id, since) in &self.seen.troubled.clone() {
            let trouble = snapshot.nodes.get(id).and_then(|found| found.record.trouble);
            let Some(trouble) = trouble else { continue };
            let has_units = snapshot.claims.values().any(|claim| claim.node == *id);
            let status = match trouble.stuck && has_units && now > *since + lease * 3 {
                true => Colour::Red,
                false if has_units || now < *since + lease => Colour::Yellow,
                false => continue,
            };
            let code = match trouble.ailment.is_of_store() {
                true => Code::StoreUnreachable,
                false => Code::Draining,
            };
            let what = trouble.ailment.words();
            let detail = match trouble.stuck {
                true => format!("node {id} lives and does not work, and gives its units to others: {what}"),
                false => format!("node {id} may not work, and gets no units: {what}"),
            };
            self.because(status, code, detail, *since);
        }
    }

    fn at_units(&mut self, units: &UnitsView) {
        let (now, lease) = (self.app.clock.monotonic(), self.app.config.cluster.lease);
        let unsettled = self.seen.unsettled.clone();
        if self.seen.catalog.is_none() {
            let detail = "the catalog was not read yet".to_owned();
            return self.because(Colour::Yellow, Code::UnitsMoving, detail, now);
        }
        for (orphaned, code) in [(true, Code::UnitsOrphaned), (false, Code::UnitsMoving)] {
            let of = unsettled.values().filter(|unit| (unit.state == UnitState::Orphaned) == orphaned);
            let Some(since) = of.map(|unit| unit.since).min() else { continue };
            let status = if now > since + lease * 2 { Colour::Red } else { Colour::Yellow };
            let detail = match orphaned {
                true => format!("{} units are of nodes that are gone", units.orphaned),
                false => format!("{} units are on their way", unsettled.len() as u64 - units.orphaned),
            };
            self.because(status, code, detail, since);
        }
    }
}
