//! `GET /cluster/nodes` and `GET /cluster/nodes/:id`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::NodeView;
use flare_model::cluster::NodeId;
use http::{StatusCode, Uri};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::PageQuery;
use crate::{AppState, body};

/// Lists the nodes, by name.
pub async fn list(State(app): AppState, uri: Uri) -> Result<Response, ApiError> {
    let page = PageQuery::read(&app, &uri, &[])?;
    let nodes = app.nodes().await;
    let total = nodes.len() as u64;
    let part: Vec<NodeView> = nodes.into_iter().skip(page.offset).take(page.limit).collect();
    Ok(page.answer(total, "nodes", part))
}

/// One node.
pub async fn show(State(app): AppState, Path(id): Path<String>) -> Result<Response, ApiError> {
    Ok(body::answer(StatusCode::OK, &app.node(&NodeId::new(id)).await?))
}

/// A node, as an example.
pub fn example() -> Value {
    json!({
        "id": "node-a", "address": "http://10.0.0.1:8080", "state": "live", "trouble": null, "self": true, "leader": true,
        "eligible": true, "weight": 1, "version": "0.1.0", "sha": "0123456789ab", "protocol": 1, "session": "ses_17",
        "startedAt": examples::TIME, "seenAt": examples::TIME, "leaseLeft": "7.2s", "units": 334,
        "load": {"cpu": 0.42, "deliveriesPerSecond": 5210.5, "acceptedPerSecond": 880.0, "backlog": 120, "connections": 64},
    })
}

/// What the description says of the list.
pub fn describe_list(it: &mut Notes<'_>) {
    it.is("listNodes", "Cluster", "List the nodes").pages().answers_list::<NodeView>(
        "nodes",
        "By name; those that left are listed for an hour as `gone`.",
        example(),
    );
}

/// What the description says of one.
pub fn describe_show(it: &mut Notes<'_>) {
    it.is("getNode", "Cluster", "One node")
        .answers::<NodeView>(200, "The node.", example())
        .refuses(404, "There is no such node.");
}
