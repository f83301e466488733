//! `GET /cluster/stats`.

use axum::extract::State;
use axum::response::Response;
use flare_core::operations::{NodeStats, StatsView};
use http::{HeaderMap, StatusCode};
use serde_json::json;

use super::gather::{Gathered, as_operator, gather};
use super::is_forwarded;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};

/// Says what all nodes do. To another node it says what this one does.
pub async fn handle(State(app): AppState, headers: HeaderMap) -> Result<Response, ApiError> {
    if is_forwarded(&headers) {
        return Ok(body::answer(StatusCode::OK, &app.own_stats()));
    }
    let Gathered { answered, unreachable } =
        gather::<NodeStats>(&app, "/cluster/stats", &as_operator(&app)).await;
    let others = answered.into_iter().filter_map(|(_, stats)| stats);
    let mut answered: Vec<NodeStats> = std::iter::once(app.own_stats()).chain(others).collect();
    answered.sort_by(|one, other| one.node.cmp(&other.node));
    Ok(body::answer(StatusCode::OK, &app.cluster_stats(answered, unreachable)))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getClusterStats", "Cluster", "What all nodes do").answers::<StatsView>(
        200,
        "A node that does not answer within a second is in `unreachable` and missing from the sums.",
        json!({
            "at": examples::TIME, "nodes": 3, "units": {"subscription": 1000, "producer": 0, "consumer": 0, "sweeper": 1},
            "acceptedPerSecond": 880.0, "deliveriesPerSecond": 15600.0, "backlog": 120,
            "moves": {"total": 12, "underWay": 0}, "takeovers": 3, "fencedWrites": 1, "cutAttempts": 4, "lateRequests": 0,
            "perNode": [{"node": "node-a", "units": 334, "deliveriesPerSecond": 5210.5, "backlog": 40}],
            "unreachable": [],
        }),
    );
}
