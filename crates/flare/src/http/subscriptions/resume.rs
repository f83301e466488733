//! `POST /resources/:rid/subscriptions/:id/resume`.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::{Ids, ids};
use crate::http::error::ApiError;
use crate::http::{AppState, body};

/// Lets a subscription go on; safe to repeat.
pub async fn handle(State(app): AppState, path: Ids) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let subscription = app.resume(&resource, &id).await?;
    Ok(body::answer(StatusCode::OK, &app.view(&subscription).await?))
}
