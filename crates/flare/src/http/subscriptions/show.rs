//! `GET /resources/:rid/subscriptions/:id`.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::{Ids, ids};
use crate::http::error::ApiError;
use crate::http::{AppState, body};

/// Shows a subscription.
pub async fn handle(State(app): AppState, path: Ids) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let subscription = app.subscription(&resource, &id)?;
    Ok(body::answer(StatusCode::OK, &app.view(&subscription).await?))
}
