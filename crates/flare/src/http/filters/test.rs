//! `POST /filters/test`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};

use crate::http::error::ApiError;
use crate::http::{AppState, body};

/// Tries an expression on a document.
pub async fn handle(State(app): AppState, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    let bytes = body::read(&app, &headers, body).await?;
    let trial = body::json(&bytes)?;
    Ok(body::answer(StatusCode::OK, &app.try_filter(&trial)?))
}
