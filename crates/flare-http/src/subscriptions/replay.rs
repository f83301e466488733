//! `POST /resources/:rid/subscriptions/:id/replay`, `GET .../replays` and `GET .../replays/:replay`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use flare_core::operations::ReplayDraft;
use flare_core::operations::ReplayView;
use http::header::{HeaderValue, LOCATION};
use http::{HeaderMap, StatusCode, Uri};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{Ids, ids, place};
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::PageQuery;
use crate::{AppState, body};

/// A replay that has begun.
#[derive(Serialize, JsonSchema)]
struct ReplayBegun {
    /// Its id.
    id: String,
    /// How many documents it sends.
    total: u64,
}

/// Begins a replay.
pub async fn handle(
    State(app): AppState,
    path: Ids,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let draft = body::optional(&body::read(&app, &headers, body).await?)?;
    let replay = app.replay(&resource, &id, draft).await?;
    let location = format!("{}/replays/{}", place(&resource, &id), replay.id);
    let begun = ReplayBegun { id: replay.id, total: replay.total };
    let mut response = body::answer(StatusCode::ACCEPTED, &begun);
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// Says how far a replay is.
pub async fn progress(
    State(app): AppState,
    Ids { resource, subscription, below }: Ids,
) -> Result<Response, ApiError> {
    Ok(body::answer(StatusCode::OK, &app.replay_progress(&resource, &subscription, &below).await?))
}

/// Lists the replays that are remembered.
pub async fn list(State(app): AppState, path: Ids, uri: Uri) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let page = PageQuery::read(&app, &uri, &[])?;
    let found = app.replays(&resource, &id, page.offset, page.limit).await?;
    Ok(page.answer(found.total, "replays", found.replays))
}

fn example() -> serde_json::Value {
    json!({"id": "rpl_1", "total": 1000, "done": 250, "state": "running", "createdAt": examples::TIME})
}

/// What the description says of beginning one.
pub fn describe(it: &mut Notes<'_>) {
    it.is("replay", "Subscriptions", "Send again")
        .text(
            "Sends the newest state again, even to a client that has it. Notifications carry `Flare-Replay`.",
        )
        .optional_body::<ReplayDraft>(json!({"scope": "all", "since": "2026-11-15T00:00:00Z"}))
        .answers::<ReplayBegun>(
            202,
            "`total` is how many documents it sends; 0 for a document that is in flight just now.",
            json!({"id": "rpl_1", "total": 1000}),
        )
        .with_location(202)
        .refuses(409, "A replay of everything, or the beginning, is under way.");
}

/// What the description says of one.
pub fn describe_progress(it: &mut Notes<'_>) {
    it.is("getReplay", "Subscriptions", "How far a replay is").answers::<ReplayView>(
        200,
        "The replay. The last 20 of a subscription are known.",
        example(),
    );
}

/// What the description says of the list.
pub fn describe_list(it: &mut Notes<'_>) {
    it.is("listReplays", "Subscriptions", "List replays").pages().answers_list::<ReplayView>(
        "replays",
        "The last 20, in the order in which they were asked for.",
        example(),
    );
}
