//! `POST /filters/test`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use flare_core::operations::{FilterTrial, FilterTrialView};
use http::{HeaderMap, StatusCode};

use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, body};
use serde_json::json;

/// Tries an expression on a document.
pub async fn handle(State(app): AppState, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    let bytes = body::read(&app, &headers, body).await?;
    let trial = body::json(&bytes)?;
    Ok(body::answer(StatusCode::OK, &app.try_filter(&trial)?))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("testFilter", "Insight", "Try an expression")
        .text("Evaluates a `filter` or a `when` as a subscription would, on the document in the body.")
        .body::<FilterTrial>(json!({"filter": "document.quantity > 0", "document": {"quantity": 3}}))
        .answers::<FilterTrialView>(200, "Its value, or why it has none.", json!({"result": true}))
        .answers_only(&[200, 400, 408, 413]);
}
