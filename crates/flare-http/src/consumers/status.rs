//! `GET /consumers/:id/status`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::ConsumerStatusView;
use flare_model::ids::ResourceId;
use http::StatusCode;
use serde_json::json;

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};

/// Says how a consumer fares.
pub async fn handle(State(app): AppState, Path(id): Path<String>) -> Result<Response, ApiError> {
    Ok(body::answer(StatusCode::OK, &app.consumer_status(&ResourceId::new(id)).await?))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getConsumerStatus", "Consumers", "How a consumer fares")
        .text("Numbers count from when it was first read. `lag` and `oldestAge` are null where the source cannot say.")
        .answers::<ConsumerStatusView>(
            200,
            "How it fares.",
            json!({
                "status": "active", "since": examples::TIME, "reason": null, "node": "node-a",
                "units": [{"unit": format!("consumer/{}/0", examples::CONSUMER), "node": "node-a", "epoch": 12,
                    "position": null, "lag": 17, "state": "running"}],
                "received": 4711, "accepted": 4600, "unchanged": 100, "stale": 10, "rejected": 5, "acknowledged": 4711,
                "deadLetters": 1, "messagesPerSecond": 120.0, "lag": 17, "oldestAge": "1.2s",
                "lastMessageAt": examples::TIME, "lastFailure": null,
            }),
        );
}
