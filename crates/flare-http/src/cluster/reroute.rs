//! `POST /cluster/reroute`.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use flare_core::operations::{RerouteDraft, RerouteView};
use http::StatusCode;
use serde_json::json;

use super::is_forwarded;
use super::relay::relay;
use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, body};

/// Has the leader move units.
pub async fn handle(State(app): AppState, request: Request) -> Result<Response, ApiError> {
    let (head, sent) = request.into_parts();
    let bytes = body::read(&app, &head.headers, sent).await?;
    let draft: RerouteDraft = body::optional(&bytes)?;
    if let Some(rerouted) = app.reroute(draft).await? {
        return Ok(body::answer(StatusCode::OK, &rerouted));
    }
    match app.leader_elsewhere() {
        Some((node, address)) if !is_forwarded(&head.headers) => {
            relay(&app, &node, &address, Request::from_parts(head, Body::from(bytes))).await
        }
        _ => Err(ApiError::unavailable("no node leads at the moment; one will soon")),
    }
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("reroute", "Cluster", "Move units")
        .text(
            "What is asked is done in order, all or nothing. A unit that was moved stays where it is until its node goes or \
             drains, or it is unpinned. No commands: plan now.",
        )
        .optional_body::<RerouteDraft>(json!({"commands": [], "dryRun": true}))
        .answers::<RerouteView>(
            200,
            "Units that get another node.",
            json!({"dryRun": true, "plan": [
                {"unit": "subscription/sub_9w3kq0v7d1m5c2xj4f8t/0", "from": "node-a", "to": "node-b", "reason": "reroute"},
            ]}),
        );
}
