//! `GET /resources/:rid/subscriptions/:id/status`.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::{Ids, ids};
use crate::http::error::ApiError;
use crate::http::{AppState, body};

/// Says how a subscription stands.
pub async fn handle(State(app): AppState, path: Ids) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    Ok(body::answer(StatusCode::OK, &app.status(&resource, &id).await?))
}
