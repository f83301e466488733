//! `POST /resources/:rid/subscriptions/:id/pause`.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::{Ids, ids};
use crate::http::error::ApiError;
use crate::http::{AppState, body};

/// Stops a subscription; safe to repeat.
pub async fn handle(State(app): AppState, path: Ids) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let subscription = app.pause(&resource, &id).await?;
    Ok(body::answer(StatusCode::OK, &app.view(&subscription).await?))
}
