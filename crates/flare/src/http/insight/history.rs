//! `GET /metrics/history?last=10m`: what happened lately, a point for each step of time.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use flare_model::duration::HumanDuration;
use http::{StatusCode, Uri};
use serde_json::json;

use crate::http::error::ApiError;
use crate::http::{AppState, body, page, query};

/// How far back, when the request does not say.
const USUAL: Duration = Duration::from_secs(600);

/// Shows the points of a span of time, the oldest first.
pub async fn handle(State(app): AppState, uri: Uri) -> Result<Response, ApiError> {
    let mut last = USUAL;
    for (name, value) in page::pairs(&uri) {
        match name.as_str() {
            "last" => last = query::duration("last", &value)?.0,
            other => return Err(page::unknown(other, &["last"])),
        }
    }
    let series = app.history.last(last);
    let step = HumanDuration(series.step);
    Ok(body::answer(StatusCode::OK, &json!({"step": step, "points": series.points})))
}
