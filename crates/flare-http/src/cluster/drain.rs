//! `POST /cluster/nodes/:id/drain` and `DELETE` of the same.

use axum::extract::{Path, Request, State};
use axum::response::Response;
use flare_core::operations::NodeView;
use flare_model::cluster::NodeId;
use http::StatusCode;

use super::nodes::example;
use super::relay::relay;
use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, body};

/// Has a node hand its units over.
pub async fn begin(app: AppState, path: Path<String>, request: Request) -> Result<Response, ApiError> {
    drain(app, path, request, true).await
}

/// Has it take units again.
pub async fn end(app: AppState, path: Path<String>, request: Request) -> Result<Response, ApiError> {
    drain(app, path, request, false).await
}

async fn drain(
    State(app): AppState,
    Path(id): Path<String>,
    request: Request,
    drains: bool,
) -> Result<Response, ApiError> {
    let id = NodeId::new(id);
    if id == app.about.node {
        let status = if drains { StatusCode::ACCEPTED } else { StatusCode::OK };
        return Ok(body::answer(status, &app.drain(drains).await?));
    }
    let node = app.node(&id).await?;
    match app.address_of(&id) {
        Some(address) => relay(&app, &id, &address, request).await,
        None => {
            let detail = format!("node {} is gone, and has no units", node.id);
            Err(ApiError::new(StatusCode::CONFLICT, "Conflict", detail))
        }
    }
}

/// What the description says of it.
pub fn describe_begin(it: &mut Notes<'_>) {
    it.is("drainNode", "Cluster", "Have a node hand its units over")
        .answers::<NodeView>(202, "The node; it goes on, and takes no units. Safe to repeat.", example())
        .refuses(404, "There is no such node.")
        .refuses(409, "It is gone.");
}

/// What the description says of its end.
pub fn describe_end(it: &mut Notes<'_>) {
    it.is("undrainNode", "Cluster", "Have a node take units again")
        .answers::<NodeView>(200, "The node.", example())
        .refuses(404, "There is no such node.")
        .refuses(409, "It is gone.");
}
