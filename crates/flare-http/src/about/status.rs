//! `GET /status`: version, times, counts.

use std::collections::HashSet;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use flare_core::operations::ClusterColour;
use flare_core::steps::{Seen, Step};
use flare_core::telemetry::TelemetryView;
use flare_core::version::Version;
use flare_model::access::{Need, Scope};
use flare_model::duration::HumanDuration;
use flare_model::time::Timestamp;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::AppState;
use crate::access::By;
use crate::body;
use crate::error::ApiError;
use crate::openapi::Notes;

/// How long the store may take to count.
const STORE: Duration = Duration::from_secs(1);

/// How the node is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NodeView {
    #[serde(flatten)]
    version: Version,
    /// When the process began, in seconds since 1970.
    start_time_epoch_secs: i64,
    /// The time of the node, in seconds since 1970.
    current_time_epoch_secs: i64,
    /// How the clock of the machine was set meanwhile.
    clock: ClockView,
    /// How long the process has been running.
    uptime: HumanDuration,
    /// The engine that keeps everything.
    store: String,
    /// The node that answers.
    node: String,
    /// The cluster that it is in; one by itself is a cluster of one.
    cluster: ClusterView,
    /// How many nodes are live.
    nodes: u64,
    /// Units of work, of all accounts: for whoever may see the whole node.
    #[serde(skip_serializing_if = "Option::is_none")]
    units: Option<UnitsView>,
    /// How much happens, in all accounts: for whoever may see the whole node.
    #[serde(skip_serializing_if = "Option::is_none")]
    rates: Option<RatesView>,
    /// How many consumers there are.
    consumers: u64,
    /// How many resources there are.
    resources: usize,
    /// How many subscriptions there are.
    subscriptions: usize,
    /// How many live documents there are; null while the store does not answer.
    documents: Option<u64>,
    /// How many deletes are remembered; null while the store does not answer.
    tombstones: Option<u64>,
    /// How sending to a collector goes, where one is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    telemetry: Option<TelemetryView>,
}

/// The cluster of a node.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ClusterOfNode")]
struct ClusterView {
    /// Its name.
    name: String,
    /// How it fares, as this node sees it.
    status: ClusterColour,
    /// The node that leads.
    leader: Option<String>,
}

/// Units of work.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "UnitsOfNode")]
struct UnitsView {
    /// That this node serves.
    running: u64,
    /// That there are.
    total: u64,
}

/// How much happens on this node.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RatesOfNode")]
struct RatesView {
    /// Changes accepted in a second.
    accepted_per_second: f64,
    /// Deliveries in a second.
    deliveries_per_second: f64,
}

/// How the wall clock was set while the process ran.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ClockView {
    /// How often it was set, by two seconds or more.
    steps: u64,
    /// The last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_step: Option<StepView>,
}

/// The clock was set.
#[derive(Serialize, JsonSchema)]
struct StepView {
    /// When that was noticed, by the clock as it was set.
    at: Timestamp,
    /// By how many milliseconds; negative: back.
    millis: i64,
}

impl ClockView {
    fn of(seen: Seen) -> ClockView {
        let last_step = seen.last.map(|Step { at, by }| StepView { at, millis: by });
        ClockView { steps: seen.steps, last_step }
    }
}

/// Answers how the node is.
pub async fn handle(State(app): AppState, By(by): By) -> Result<Response, ApiError> {
    let (resources, subscriptions) = app.registry.counts_for(&by);
    // That the store does not answer is something to say here, not a reason to say nothing.
    let counting = tokio::time::timeout(STORE, app.store.documents.lanes());
    let (health, counted) = tokio::join!(app.health_now(), counting);
    let mut lanes = counted.ok().and_then(Result::ok);
    if let Some(lanes) = lanes.as_mut().filter(|_| app.access.is_some()) {
        let own = app.registry.all_tracked().into_iter();
        let own: HashSet<_> = own.filter(|one| by.sees_whole(one)).map(|one| one.number).collect();
        lanes.retain(|lane| own.contains(&lane.lane.resource));
    }
    let sees_node = by.has(Need::Node(&[Scope::Read]));
    let now = app.clock.now();
    let uptime = Duration::from_secs(app.clock.monotonic().as_secs());
    let own = app.own_stats();
    let seconds = |time: Timestamp| time.millis().div_euclid(1000);
    let view = NodeView {
        version: app.about.version,
        start_time_epoch_secs: seconds(app.started_at),
        current_time_epoch_secs: seconds(now),
        clock: ClockView::of(app.steps.seen()),
        uptime: HumanDuration(uptime),
        store: format!("{:?}", app.config.provider.store).to_lowercase(),
        node: own.node,
        cluster: ClusterView { name: health.name, status: health.status, leader: health.leader },
        nodes: health.nodes.live,
        units: sees_node.then_some(UnitsView { running: own.units, total: health.units.total }),
        rates: sees_node.then_some(RatesView {
            accepted_per_second: own.accepted_per_second,
            deliveries_per_second: own.deliveries_per_second,
        }),
        consumers: app.registry.consumers_for(&by, 0, 0).total as u64,
        resources,
        subscriptions,
        documents: lanes.as_ref().map(|lanes| lanes.iter().map(|lane| lane.documents).sum()),
        tombstones: lanes.as_ref().map(|lanes| lanes.iter().map(|lane| lane.tombstones).sum()),
        telemetry: app.telemetry.as_ref().filter(|_| sees_node).map(|telemetry| telemetry.view()),
    };
    Ok(body::answer(StatusCode::OK, &view))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getNodeStatus", "Node", "Version, times and counts").answers::<NodeView>(
        200,
        "How the node is.",
        json!({
            "version": "0.1.0", "sha": "0123456789ab", "buildTime": "2026-11-15T08:00:00Z",
            "startTimeEpochSecs": 1794731400, "currentTimeEpochSecs": 1794735000, "uptime": "1h", "clock": {"steps": 0},
            "store": "embedded", "node": "node-a", "cluster": {"name": "flare", "status": "green", "leader": "node-a"}, "nodes": 1,
            "units": {"running": 3, "total": 3}, "consumers": 0, "rates": {"acceptedPerSecond": 0.0, "deliveriesPerSecond": 0.0}, "resources": 1, "subscriptions": 2, "documents": 1000, "tombstones": 12,
        }),
    );
}
