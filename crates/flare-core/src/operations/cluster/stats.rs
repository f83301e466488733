//! `/cluster/stats`: what this node does, and, with what others say of themselves, what all do.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use flare_model::cluster::life::Tenure;
use flare_model::cluster::{Reason, UnitKind, UnitState};
use flare_model::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::health::count_units;
use crate::cluster::REASONS;
use crate::observe::metrics::{Family, Labelled, Samples};
use crate::operations::App;

/// What one node says of itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStats {
    /// Its name.
    pub node: String,
    /// Units that it has.
    pub units: u64,
    /// Deliveries in a second.
    pub deliveries_per_second: f64,
    /// Changes accepted in a second.
    pub accepted_per_second: f64,
    /// Documents that clients of its units have yet to be told of.
    pub backlog: u64,
    /// Units that came to it from other nodes.
    pub moves: u64,
    /// Of these, from nodes that were gone.
    pub takeovers: u64,
    /// Records that were refused.
    pub fenced_writes: u64,
    /// Attempts that were cut off.
    pub cut_attempts: u64,
    /// Of these, the ones that were open beyond the lease.
    pub late_requests: u64,
}

/// `GET /cluster/stats`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterStats")]
pub struct StatsView {
    /// When.
    pub at: Timestamp,
    /// Nodes there are.
    pub nodes: u64,
    /// Units there are, by kind.
    pub units: BTreeMap<&'static str, u64>,
    /// Changes accepted in a second.
    pub accepted_per_second: f64,
    /// Deliveries in a second.
    pub deliveries_per_second: f64,
    /// Documents that clients have yet to be told of.
    pub backlog: u64,
    /// Units that went from node to node.
    pub moves: MovesView,
    /// Units that were taken over from nodes that were gone.
    pub takeovers: u64,
    /// Records that were refused, because another node had the unit by then.
    pub fenced_writes: u64,
    /// Attempts that were cut off, because a node had to give up a unit at once.
    pub cut_attempts: u64,
    /// Of these, the ones that were open beyond the lease of their node.
    pub late_requests: u64,
    /// Each node that answered.
    pub per_node: Vec<PerNodeView>,
    /// Nodes that did not answer in time, and are missing from the sums.
    pub unreachable: Vec<String>,
}

/// Units that went from node to node.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterMoves")]
pub struct MovesView {
    /// Since the nodes that answered began.
    pub total: u64,
    /// That are on their way now.
    pub under_way: u64,
}

/// What one node does.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterNodeStats")]
pub struct PerNodeView {
    /// Its name.
    pub node: String,
    /// Units that it has.
    pub units: u64,
    /// Deliveries in a second.
    pub deliveries_per_second: f64,
    /// Documents that clients of its units have yet to be told of.
    pub backlog: u64,
}

impl App {
    /// What this node does.
    pub fn own_stats(&self) -> NodeStats {
        let load = self.load_now();
        // From when its claim says so: then others take it for running here.
        let serves = |tenure: &Tenure| {
            use Tenure::{Draining, Opening, Publishing, Running};
            matches!(tenure, Publishing | Opening { .. } | Running { .. } | Draining { .. })
        };
        let units = match &self.member {
            Some(member) => member.seen().tenures.values().filter(|tenure| serves(tenure)).count() as u64,
            None => self.all_units().len() as u64,
        };
        let mut stats = NodeStats {
            node: self.about.node.to_string(),
            units,
            deliveries_per_second: load.deliveries_per_second,
            accepted_per_second: load.accepted_per_second,
            backlog: load.backlog,
            ..NodeStats::default()
        };
        if let Some(member) = &self.member {
            let read = |number: &std::sync::atomic::AtomicU64| number.load(Ordering::Relaxed);
            // What is new, or was cut anew, was nowhere before.
            let moves =
                REASONS.iter().filter(|(reason, _)| !matches!(reason, Reason::Created | Reason::Shards));
            stats.moves = moves.map(|(reason, _)| member.moved(*reason)).sum();
            stats.takeovers = member.moved(Reason::NodeGone);
            stats.fenced_writes = read(&member.tenancy.fenced_writes);
            stats.cut_attempts = read(&member.tenancy.cut_attempts);
            stats.late_requests = read(&member.tenancy.late_requests);
        }
        stats
    }

    /// The same as metrics, with how the cluster is as this node sees it.
    pub(in crate::operations) fn cluster_metrics(&self) -> Vec<Family> {
        let (seen, own, units) = (self.seen(), self.own_stats(), count_units(&self.seen()));
        let left = seen.deadline.map(|deadline| deadline.saturating_sub(self.clock.monotonic()));
        let states = [
            ("running", units.running),
            ("assigned", units.assigned),
            ("draining", units.draining),
            ("orphaned", units.orphaned),
            ("unassigned", units.unassigned),
        ];
        let labelled = |name: &'static str, label: &'static str, value: f64| Labelled {
            labels: vec![(name, label)],
            value,
        };
        let by_state = states.map(|(state, count)| labelled("state", state, count as f64));
        let moved = |reason| self.member.as_ref().map_or(0, |member| member.moved(reason));
        let by_reason = REASONS.map(|(reason, word)| labelled("reason", word, moved(reason) as f64));
        let counter = |name, help, value: u64| Family {
            name,
            help,
            samples: Samples::Counter(vec![Labelled { labels: Vec::new(), value: value as f64 }]),
        };
        vec![
            Family {
                name: "flare_cluster_units",
                help: "Units of the cluster, by how they fare, as this node sees it.",
                samples: Samples::Gauge(by_state.into()),
            },
            Family {
                name: "flare_cluster_moves_total",
                help: "Units that came to this node, by why.",
                samples: Samples::Counter(by_reason.into()),
            },
            counter(
                "flare_cluster_fenced_writes_total",
                "Records that were refused, because another node had the unit by then.",
                own.fenced_writes,
            ),
            counter(
                "flare_cluster_cut_attempts_total",
                "Attempts that were cut off, because the node had to give up a unit at once.",
                own.cut_attempts,
            ),
            counter(
                "flare_cluster_late_requests_total",
                "Of these, the ones that were open beyond the lease of the node.",
                own.late_requests,
            ),
            Family::gauge(
                "flare_cluster_leader",
                "Whether this node leads: 1 or 0.",
                f64::from(u8::from(seen.leads.is_some())),
            ),
            Family::gauge(
                "flare_cluster_lease_seconds",
                "How long the lease of this node still lasts; all of it for a node by itself.",
                left.unwrap_or(self.config.cluster.lease).as_secs_f64(),
            ),
        ]
    }

    /// What all nodes do that have answered.
    pub fn cluster_stats(&self, answered: Vec<NodeStats>, unreachable: Vec<String>) -> StatsView {
        let seen = self.seen();
        let kinds = [UnitKind::Subscription, UnitKind::Producer, UnitKind::Consumer, UnitKind::Sweeper];
        let mut units: BTreeMap<&'static str, u64> = kinds.map(|kind| (kind.as_str(), 0)).into();
        for unit in seen.units() {
            *units.entry(unit.kind().as_str()).or_default() += 1;
        }
        let sum = |of: fn(&NodeStats) -> u64| answered.iter().map(of).sum::<u64>();
        let under_way =
            seen.unsettled.values().filter(|unit| unit.state != UnitState::Unassigned).count() as u64;
        StatsView {
            at: self.clock.now(),
            nodes: seen.snapshot.as_ref().map_or(0, |snapshot| snapshot.nodes.len() as u64),
            units,
            accepted_per_second: answered.iter().map(|node| node.accepted_per_second).sum(),
            deliveries_per_second: answered.iter().map(|node| node.deliveries_per_second).sum(),
            backlog: sum(|node| node.backlog),
            moves: MovesView { total: sum(|node| node.moves), under_way },
            takeovers: sum(|node| node.takeovers),
            fenced_writes: sum(|node| node.fenced_writes),
            cut_attempts: sum(|node| node.cut_attempts),
            late_requests: sum(|node| node.late_requests),
            per_node: answered
                .into_iter()
                .map(|node| PerNodeView {
                    node: node.node,
                    units: node.units,
                    deliveries_per_second: node.deliveries_per_second,
                    backlog: node.backlog,
                })
                .collect(),
            unreachable,
        }
    }
}
