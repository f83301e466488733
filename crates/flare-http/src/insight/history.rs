//! `GET /metrics/history?last=10m`: what happened lately, a point for each step of time.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use flare_core::observe::{Gauges, Point};
use flare_model::duration::HumanDuration;
use http::{StatusCode, Uri};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body, page, query};

/// How far back, when the request does not say.
const USUAL: Duration = Duration::from_secs(600);

/// Shows the points of a span of time, the oldest first.
pub async fn handle(State(app): AppState, uri: Uri) -> Result<Response, ApiError> {
    let mut last = USUAL;
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "last" => last = query::duration("last", &value)?.0,
            other => return Err(page::unknown(other, &["last"])),
        }
    }
    let series = app.history.last(last);
    let view = SeriesView { step: HumanDuration(series.step), points: series.points };
    Ok(body::answer(StatusCode::OK, &view))
}

/// What happened in the last so long.
#[derive(Serialize, JsonSchema)]
struct SeriesView {
    /// How long the span of each point is.
    step: HumanDuration,
    /// The points, the oldest first.
    points: Vec<Point>,
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let last = it.schema::<HumanDuration>();
    let percentiles = json!({"p50": 0.001, "p95": 0.003, "p99": 0.01});
    it.is("getHistory", "Node", "What happened lately, for plots")
        .query(
            "last",
            json!({"allOf": [last], "default": HumanDuration(USUAL)}),
            "How far back.",
            json!("1m"),
        )
        .answers::<SeriesView>(
            200,
            "A point for each step of time.",
            json!({"step": "1s", "points": [{
                "at": examples::TIME, "seconds": 1.0, "accepted": 100.0, "unchanged": 0.0, "refused": 0.0,
                "delivered": 200.0, "discarded": 0.0, "failed": 1.0, "givenUp": 0.0,
                "latency": percentiles, "attempt": percentiles, "commit": percentiles,
                "gauges": Gauges::default(),
            }]}),
        )
        .answers_only(&[200, 400]);
}
