//! `POST /resources/:rid/subscriptions/:id/test`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};

use super::{Ids, ids};
use crate::http::error::ApiError;
use crate::http::{AppState, body};
use crate::operations::TestDraft;

/// Sends a sample notification now and answers how it went.
pub async fn handle(
    State(app): AppState,
    path: Ids,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let bytes = body::read(&app, &headers, body).await?;
    let draft = if bytes.is_empty() { TestDraft::default() } else { body::json(&bytes)? };
    Ok(body::answer(StatusCode::OK, &app.test(&resource, &id, draft).await?))
}
