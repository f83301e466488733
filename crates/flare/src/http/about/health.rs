//! `GET /healthz`: the process lives. `GET /readyz`: its store answers.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::json;

use crate::http::AppState;
use crate::http::body;
use crate::http::error::ApiError;

/// The process lives.
pub async fn alive() -> Response {
    body::answer(StatusCode::OK, &json!({"status": "ok"}))
}

/// The store answers.
pub async fn ready(State(app): AppState) -> Response {
    match app.store.catalog.version().await {
        Ok(_) => body::answer(StatusCode::OK, &json!({"status": "ready"})),
        Err(error) => ApiError::from(error).into_response(),
    }
}
