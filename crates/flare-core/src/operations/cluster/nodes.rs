//! `/cluster/nodes`: the members of the cluster, as this node knows them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flare_model::cluster::keys::{Load, NodeRecord, PROTOCOL};
use flare_model::cluster::{NodeId, NodeState, SessionId};
use flare_model::duration::HumanDuration;
use flare_model::time::Timestamp;
use futures_util::future::join_all;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cluster::{Alone, Seen};
use crate::observe::metrics::process::Process;
use crate::operations::{App, Done, Failure};

/// How often a node says how much it has to do.
const SECOND: Duration = Duration::from_secs(1);
const DESCRIBES: u32 = 5;

/// How long the coordinator may take to say how long leases last yet.
const LEFT: Duration = Duration::from_secs(1);

/// Over so long it is looked at how busy the node is.
const MINUTE: Duration = Duration::from_secs(60);

/// How busy the node is: what it took of the processors, compared with a core for each delivery thread.
#[derive(Default)]
pub(in crate::operations) struct Busy {
    /// When it was looked at, and what the process had taken then. Bound: a minute's looks.
    looks: Mutex<VecDeque<(Duration, Duration)>>,
    /// In thousandths.
    share: AtomicU64,
}

impl Busy {
    fn look(&self, now: Duration, threads: usize) {
        let Some(process) = Process::read() else { return };
        let mut looks = self.looks.lock();
        while looks.front().is_some_and(|(at, _)| *at + MINUTE < now) {
            looks.pop_front();
        }
        looks.push_back((now, process.cpu));
        if let (Some((first, began)), true) = (looks.front(), looks.len() > 1) {
            let (took, passed) = (process.cpu.saturating_sub(*began), now.saturating_sub(*first));
            let share = took.as_secs_f64() / passed.as_secs_f64().max(0.001) / threads.max(1) as f64;
            self.share.store((share * 1000.0) as u64, Ordering::Relaxed);
        }
    }

    fn share(&self) -> f64 {
        self.share.load(Ordering::Relaxed) as f64 / 1000.0
    }
}

/// A node of the cluster.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterNode")]
pub struct NodeView {
    /// Its name.
    pub id: NodeId,
    /// How others reach it.
    pub address: String,
    /// How it fares.
    pub state: NodeState,
    /// What keeps it from working, or may, although it renews its lease: as it says itself.
    pub trouble: Option<&'static str>,
    /// Whether it is the node that answers.
    #[serde(rename = "self")]
    pub is_self: bool,
    /// Whether it leads.
    pub leader: bool,
    /// Whether it may lead.
    pub eligible: bool,
    /// How much it takes, compared with others.
    pub weight: u32,
    /// Its version of Flare.
    pub version: String,
    /// The commit that it was built from.
    pub sha: String,
    /// What it writes and reads among nodes.
    pub protocol: u32,
    /// Its session with the coordinator; none when it is gone.
    pub session: Option<String>,
    /// When it started, by its own clock.
    pub started_at: Timestamp,
    /// When it was last seen, by the clock of the node that answers.
    pub seen_at: Timestamp,
    /// How long its lease lasts at most if it is not renewed; none when it is gone.
    pub lease_left: Option<HumanDuration>,
    /// Units that it has.
    pub units: u64,
    /// How much it has to do, as it said last.
    pub load: Load,
}

impl App {
    /// What is known of the cluster. A node by itself is one of one.
    pub fn seen(&self) -> Arc<Seen> {
        if let Some(member) = &self.member {
            return member.seen();
        }
        Arc::new(Seen::alone(Alone {
            node: self.about.node.clone(),
            record: NodeRecord { load: self.load_now(), ..self.describe_self() },
            units: self.all_units(),
            epoch: self.journey.epoch_number(),
            now: self.clock.monotonic(),
            wall: self.clock.now(),
        }))
    }

    /// What the node says of itself.
    pub fn describe_self(&self) -> NodeRecord {
        NodeRecord {
            protocol: PROTOCOL,
            address: self.about.advertised.clone(),
            state: match self.draining.load(Ordering::Acquire) {
                true => NodeState::Draining,
                false => NodeState::Live,
            },
            weight: self.config.cluster.weight,
            eligible: self.config.cluster.leader,
            version: self.about.version.version.to_owned(),
            sha: self.about.version.sha.to_owned(),
            started_at: self.started_at,
            load: Load::default(),
            gives_back: false,
            clock: None,
            trouble: None,
        }
    }

    /// How much this node has to do.
    pub(super) fn load_now(&self) -> Load {
        let Some(now) = self.history.newest() else { return Load::default() };
        let round = |number: f64| (number * 10.0).round() / 10.0;
        Load {
            cpu: (self.busy.share() * 100.0).round() / 100.0,
            deliveries_per_second: round(now.delivered),
            accepted_per_second: round(now.accepted),
            backlog: now.gauges.backlog,
            connections: now.gauges.connections,
        }
    }

    /// Says from time to time how much this node has to do, where that has changed, and what its clock says.
    pub(in crate::operations) async fn describe_node(self: Arc<App>) {
        let Some(member) = &self.member else { return std::future::pending().await };
        let give_back = self.config.cluster.give_back.0;
        let mut again = Duration::ZERO;
        loop {
            tokio::time::sleep(SECOND * DESCRIBES).await;
            self.busy.look(self.clock.monotonic(), self.journey.threads());
            let load = self.load_now();
            let now = self.clock.monotonic();
            if load != member.record().load || now >= again {
                again = now + MINUTE;
                let (gives_back, clock) = (give_back < 1.0 && load.cpu > give_back, Some(self.clock.now()));
                member.describe(|record| {
                    (record.load, record.gives_back, record.clock) = (load, gives_back, clock);
                });
            }
        }
    }

    /// `GET /cluster/nodes`. How long leases last yet is asked of the coordinator: a node whose lease is half over has missed a renewal.
    pub async fn nodes(&self) -> Vec<NodeView> {
        let mut nodes = self.known_nodes();
        let Some(member) = &self.member else { return nodes };
        let seen = self.seen();
        let session = |node: &NodeView| {
            let found = seen.snapshot.as_ref()?.nodes.get(&node.id)?;
            found.session.clone().filter(|_| node.state != NodeState::Gone)
        };
        let asked = nodes.iter().map(|node| {
            let session = session(node);
            async move { member.left(&session?, LEFT).await }
        });
        let left = join_all(asked).await;
        for (node, left) in nodes.iter_mut().zip(left) {
            if let (Some(left), false) = (left, node.is_self) {
                node.lease_left = Some(tenths(left));
            }
            let missed = node.lease_left.is_some_and(|left| left.0 < self.config.cluster.lease / 2);
            if missed && node.state == NodeState::Live {
                node.state = NodeState::Suspect;
            }
        }
        nodes
    }

    /// The nodes, as far as is known without asking anybody.
    fn known_nodes(&self) -> Vec<NodeView> {
        let seen = self.seen();
        let Some(snapshot) = &seen.snapshot else { return Vec::new() };
        let now = self.clock.monotonic();
        let (listed, seen_at) = seen.listed_at.unwrap_or((now, self.clock.now()));
        let leader = snapshot.leader.as_ref().map(|(node, ..)| node);
        let view = |id: &NodeId, record: &NodeRecord| NodeView {
            id: id.clone(),
            address: record.address.clone(),
            state: match (record.state, record.trouble) {
                (NodeState::Live, Some(_)) => NodeState::Suspect,
                (state, _) => state,
            },
            trouble: record.trouble.map(|trouble| trouble.ailment.words()),
            is_self: *id == self.about.node,
            leader: leader == Some(id),
            eligible: record.eligible,
            weight: record.weight,
            version: record.version.clone(),
            sha: record.sha.clone(),
            protocol: record.protocol,
            session: None,
            started_at: record.started_at,
            seen_at,
            lease_left: None,
            units: snapshot.claims.values().filter(|claim| claim.node == *id).count() as u64,
            load: record.load,
        };
        let there = snapshot.nodes.iter().map(|(id, found)| {
            let mut node = view(id, &found.record);
            node.session = found.session.as_ref().map(name_of_session);
            // Of others it is known that they had renewed when they were listed.
            let deadline = seen.deadline.filter(|_| node.is_self);
            let deadline = deadline.unwrap_or(listed + self.config.cluster.lease);
            let left = deadline.saturating_sub(now);
            node.lease_left = Some(tenths(left));
            node
        });
        let gone = seen.gone.iter().map(|(id, gone)| {
            let node = view(id, &gone.record);
            NodeView { state: NodeState::Gone, trouble: None, seen_at: gone.seen_at, leader: false, ..node }
        });
        let mut all: Vec<NodeView> = there.chain(gone).collect();
        all.sort_by(|one, other| one.id.cmp(&other.id));
        all
    }

    /// `GET /cluster/nodes/:id`.
    pub async fn node(&self, id: &NodeId) -> Done<NodeView> {
        let unknown = || Failure::NotFound(format!("there is no node {id}"));
        self.nodes().await.into_iter().find(|node| node.id == *id).ok_or_else(unknown)
    }

    /// Has this node hand its units over, or take some again.
    pub async fn drain(&self, drains: bool) -> Done<NodeView> {
        let Some(member) = &self.member else {
            // There is nobody who could take its units over: it goes on, and says so.
            self.draining.store(drains, Ordering::Release);
            return self.node(&self.about.node).await;
        };
        member.drain(drains);
        let is_draining = |state: NodeState| matches!(state, NodeState::Draining | NodeState::Drained);
        let node = member.node().clone();
        member
            .wait_for(member.settings.renew, |seen| {
                let found = seen.snapshot.as_ref().and_then(|snapshot| snapshot.nodes.get(&node));
                found.is_some_and(|found| is_draining(found.record.state) == drains)
            })
            .await;
        self.node(&node).await
    }
}

/// In tenths of a second.
fn tenths(left: Duration) -> HumanDuration {
    HumanDuration(Duration::from_millis(left.as_millis() as u64 / 100 * 100))
}

/// Coordinators name sessions in ways of their own: some as a number, some as we do.
fn name_of_session(session: &SessionId) -> String {
    match session.to_string() {
        named if named.starts_with("ses_") => named,
        number => format!("ses_{number}"),
    }
}
