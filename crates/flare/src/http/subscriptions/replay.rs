//! `POST /resources/:rid/subscriptions/:id/replay`, `GET .../replays` and `GET .../replays/:replay`.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::{ResourceId, SubscriptionId};
use http::header::{HeaderValue, LOCATION};
use http::{HeaderMap, StatusCode, Uri};
use serde_json::json;

use super::{Ids, ids};
use crate::http::error::ApiError;
use crate::http::page::PageQuery;
use crate::http::{AppState, body};
use crate::operations::ReplayDraft;

/// Begins a replay.
pub async fn handle(
    State(app): AppState,
    path: Ids,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let bytes = body::read(&app, &headers, body).await?;
    let draft = if bytes.is_empty() { ReplayDraft::default() } else { body::json(&bytes)? };
    let replay = app.replay(&resource, &id, draft).await?;
    let answer = json!({"id": replay.id, "total": replay.total});
    let mut response = body::answer(StatusCode::ACCEPTED, &answer);
    let location = format!("/resources/{resource}/subscriptions/{id}/replays/{}", replay.id);
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// Says how far a replay is.
pub async fn progress(
    State(app): AppState,
    Path((resource, id, replay)): Path<(String, String, String)>,
) -> Result<Response, ApiError> {
    let (resource, id) = (ResourceId::new(resource), SubscriptionId::new(id));
    Ok(body::answer(StatusCode::OK, &app.replay_progress(&resource, &id, &replay).await?))
}

/// Lists the replays that are remembered.
pub async fn list(State(app): AppState, path: Ids, uri: Uri) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let page = PageQuery::read(&app, &uri, &[])?;
    let found = app.replays(&resource, &id, page.offset, page.limit).await?;
    Ok(page.answer(found.total, "replays", found.replays))
}
