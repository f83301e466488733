//! `PATCH /resources/:rid/subscriptions/:id`, a JSON Merge Patch.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};

use super::{Ids, ids};
use crate::http::error::ApiError;
use crate::http::{AppState, body};

/// Changes a subscription.
pub async fn handle(
    State(app): AppState,
    path: Ids,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let patch = body::json(&body::read(&app, &headers, body).await?)?;
    let subscription = app.patch_subscription(&resource, &id, patch).await?;
    Ok(body::answer(StatusCode::OK, &app.view(&subscription).await?))
}
