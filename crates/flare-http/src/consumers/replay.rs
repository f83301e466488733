//! `POST /consumers/:id/replay`, `GET .../replays` and `GET .../replays/:replay`.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{ConsumerReplayDraft, ConsumerReplayView};
use flare_model::ids::ResourceId;
use http::header::{HeaderValue, LOCATION};
use http::{HeaderMap, StatusCode, Uri};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::PageQuery;
use crate::{AppState, body};

/// A replay of dead letters that has begun.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConsumerReplayBegun")]
struct Begun {
    /// Its id.
    id: String,
    /// How many messages it reads.
    total: u64,
}

/// Begins to read messages that could not be read once more.
pub async fn handle(
    State(app): AppState,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let draft = body::json::<ConsumerReplayDraft>(&body::read(&app, &headers, body).await?)?;
    let id = ResourceId::new(id);
    let replay = app.replay_consumer_letters(&id, draft).await?;
    let location = format!("/consumers/{id}/replays/{}", replay.id);
    let mut response = body::answer(StatusCode::ACCEPTED, &Begun { id: replay.id, total: replay.total });
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// Says how far a replay is.
pub async fn progress(
    State(app): AppState,
    Path((id, replay)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    Ok(body::answer(StatusCode::OK, &app.consumer_replay(&ResourceId::new(id), &replay).await?))
}

/// Lists the replays that are remembered.
pub async fn list(State(app): AppState, Path(id): Path<String>, uri: Uri) -> Result<Response, ApiError> {
    let page = PageQuery::read(&app, &uri, &[])?;
    let (total, replays) = app.consumer_replays(&ResourceId::new(id), page.offset, page.limit)?;
    Ok(page.answer(total, "replays", replays))
}

fn example() -> serde_json::Value {
    json!({
        "id": "rpl_1", "total": 3, "done": 3, "stored": 2, "state": "done", "createdAt": examples::TIME,
    })
}

/// What the description says of beginning one.
pub fn describe(it: &mut Notes<'_>) {
    it.is("replayConsumer", "Consumers", "Read messages that could not be read once more")
        .text(
            "As the consumer is now. Those that can be read become documents; the others stay dead letters.",
        )
        .body::<ConsumerReplayDraft>(json!({"scope": "deadLetters"}))
        .answers::<Begun>(
            202,
            "It is durable, and goes on by itself. `total` is how many messages it reads.",
            json!({"id": "rpl_1", "total": 3}),
        )
        .with_location(202);
}

/// What the description says of one.
pub fn describe_progress(it: &mut Notes<'_>) {
    it.is("getConsumerReplay", "Consumers", "How far a replay of dead letters is")
        .answers::<ConsumerReplayView>(200, "The replay. The last 20 of a consumer are known.", example());
}

/// What the description says of the list.
pub fn describe_list(it: &mut Notes<'_>) {
    it.is("listConsumerReplays", "Consumers", "List replays of dead letters")
        .pages()
        .answers_list::<ConsumerReplayView>(
            "replays",
            "The last 20, in the order in which they were asked for.",
            example(),
        );
}
