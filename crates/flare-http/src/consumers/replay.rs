//! `POST /consumers/:id/replay`.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{ConsumerReplayDraft, ConsumerReplayView};
use flare_model::ids::ResourceId;
use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, body};

/// Reads messages that could not be read once more.
pub async fn handle(
    State(app): AppState,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let draft = body::json::<ConsumerReplayDraft>(&body::read(&app, &headers, body).await?)?;
    let replay = app.replay_consumer_letters(&ResourceId::new(id), draft).await?;
    Ok(body::answer(StatusCode::ACCEPTED, &replay))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("replayConsumer", "Consumers", "Read messages that could not be read once more")
        .text(
            "As the consumer is now. Those that can be read become documents; the others stay dead letters.",
        )
        .body::<ConsumerReplayDraft>(json!({"scope": "deadLetters"}))
        .answers::<ConsumerReplayView>(
            202,
            "What came of it.",
            json!({"id": "rpl_0c2v9m4x7k1d8q5w3z6h", "total": 3, "done": 2}),
        );
}
