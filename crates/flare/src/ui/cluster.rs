//! `GET /ui/cluster`: the nodes, how the cluster fares, and how the node is that answers.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use flare_core::observe::Gauges;
use flare_core::operations::{App, ClusterColour, Done, NodeView};
use flare_http::AppState;
use flare_http::error::ApiError;
use flare_model::cluster::NodeState;

use super::live::{self, Listeners, Topic};
use super::moment::{Moment, Words};
use super::page::{Frame, PageError, Section, Visit, html};
use super::text;
use crate::version;

#[derive(Template)]
#[template(path = "cluster.html")]
struct Page {
    frame: Frame,
    node: Node,
}

/// What moves.
#[derive(Template)]
#[template(path = "cluster-node.html")]
struct Node {
    name: String,
    cluster: String,
    colour: &'static str,
    tone: &'static str,
    leader: Option<String>,
    reasons: Vec<String>,
    running: u64,
    units: u64,
    nodes: Vec<Row>,
    version: &'static str,
    sha: &'static str,
    built: Words,
    started: Moment,
    uptime: String,
    address: String,
    store: String,
    path: String,
    cores: u64,
    api_threads: u64,
    delivery_threads: u64,
    resources: u64,
    subscriptions: u64,
    documents: u64,
    gauges: Gauges,
}

/// A node in the list.
struct Row {
    id: String,
    state: &'static str,
    trouble: Option<&'static str>,
    leader: bool,
    is_self: bool,
    units: u64,
    deliveries: f64,
    backlog: u64,
    address: String,
}

impl From<NodeView> for Row {
    fn from(node: NodeView) -> Row {
        Row {
            id: node.id.to_string(),
            state: match node.state {
                NodeState::Live => "live",
                NodeState::Draining => "draining",
                NodeState::Drained => "drained",
                NodeState::Suspect => "suspect",
                NodeState::Gone => "gone",
            },
            trouble: node.trouble,
            leader: node.leader,
            is_self: node.is_self,
            units: node.units,
            deliveries: node.load.deliveries_per_second,
            backlog: node.load.backlog,
            address: node.address,
        }
    }
}

/// Shows the node.
pub async fn handle(State(app): AppState, visit: Visit) -> Result<Response, PageError> {
    let node = Node::of(&app).await?;
    Ok(html(&Page { frame: visit.frame(Section::Cluster, "Cluster"), node }))
}

/// What moves, as it moves.
pub async fn live(State(app): AppState, Extension(live): Listeners) -> Result<Response, ApiError> {
    live::listen(&app, &live, Topic::Cluster)
}

/// The streams of the page.
pub async fn stream(app: &App) -> Option<String> {
    Some(live::replace("node", &Node::of(app).await.ok()?.render().ok()?))
}

impl Node {
    async fn of(app: &App) -> Done<Node> {
        let (resources, subscriptions) = app.registry.counts();
        let lanes = app.store.documents.lanes().await?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let uptime = std::time::Duration::from_secs(app.clock.monotonic().as_secs());
        let health = app.health_now().await;
        let (colour, tone) = match health.status {
            ClusterColour::Green => ("green", "tone-good"),
            ClusterColour::Yellow => ("yellow", "tone-warn"),
            ClusterColour::Red => ("red", "tone-bad"),
        };
        Ok(Node {
            name: app.about.node.to_string(),
            cluster: health.name,
            colour,
            tone,
            leader: health.leader,
            reasons: health.reasons.into_iter().map(|reason| reason.detail).collect(),
            running: health.units.running,
            units: health.units.total,
            nodes: app.nodes().await.into_iter().map(Row::from).collect(),
            version: version::VERSION,
            sha: version::SHA,
            built: Words::of(version::BUILD_TIME),
            started: Moment(app.started_at),
            uptime: text::fine(uptime),
            address: app.about.address.to_string(),
            store: format!("{:?}", app.config.provider.store).to_lowercase(),
            path: app.config.provider.embedded.path.display().to_string(),
            cores: cores as u64,
            api_threads: app.config.http.server.thread_count(cores) as u64,
            delivery_threads: app.config.delivery.thread_count(cores) as u64,
            resources: resources as u64,
            subscriptions: subscriptions as u64,
            documents: lanes.iter().map(|lane| lane.documents).sum(),
            gauges: app.history.latest().map(|sample| sample.gauges.clone()).unwrap_or_default(),
        })
    }
}
