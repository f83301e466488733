//! `POST /resources/:rid/subscriptions/:id/secret/rotate`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};

use super::{Ids, ids};
use crate::http::error::ApiError;
use crate::http::{AppState, body};
use crate::operations::RotationDraft;

/// Gives a subscription another secret and shows it, once.
pub async fn handle(
    State(app): AppState,
    path: Ids,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let bytes = body::read(&app, &headers, body).await?;
    let draft = if bytes.is_empty() { RotationDraft::default() } else { body::json(&bytes)? };
    Ok(body::answer(StatusCode::OK, &app.rotate_secret(&resource, &id, draft).await?))
}
