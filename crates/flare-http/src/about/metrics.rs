//! `GET /metrics`: what is counted, as Prometheus reads it.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use flare_core::observe::metrics::text::{Format, page};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::AppState;
use crate::error::ApiError;
use crate::openapi::Notes;

/// Shows all metrics in the format that is asked for.
pub async fn handle(State(app): AppState, headers: HeaderMap) -> Result<Response, ApiError> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = Format::wanted(accept);
    let page = page(&app.metrics().await?, format);
    let mut response = (StatusCode::OK, page).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    Ok(response)
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getMetrics", "Node", "What is counted, for Prometheus")
        .text("In the text format of Prometheus, or in that of OpenMetrics where `Accept` asks for it.")
        .answers_as(
            200,
            "All metrics.",
            Format::Prometheus.content_type(),
            json!({"type": "string"}),
            json!("# TYPE flare_documents gauge\nflare_documents 1000\n"),
        );
}
