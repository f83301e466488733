//! `GET /status`: version, times, counts.

use axum::extract::State;
use axum::response::Response;
use flare_model::duration::HumanDuration;
use http::StatusCode;
use serde_json::json;

use crate::http::AppState;
use crate::http::body;
use crate::http::error::ApiError;
use crate::version;

/// Answers how the node is.
pub async fn handle(State(app): AppState) -> Result<Response, ApiError> {
    let (resources, subscriptions) = app.registry.counts();
    let lanes = app.store.documents.lanes().await?;
    let now = app.clock.now();
    let uptime = std::time::Duration::from_secs(app.clock.monotonic().as_secs());
    let mut status = json!({
        "version": version::VERSION,
        "sha": version::SHA,
        "buildTime": version::BUILD_TIME,
        "startTimeEpochSecs": app.started_at.millis().div_euclid(1000),
        "currentTimeEpochSecs": now.millis().div_euclid(1000),
        "uptime": HumanDuration(uptime).to_string(),
        "store": format!("{:?}", app.config.provider.store).to_lowercase(),
        "nodes": 1,
        "resources": resources,
        "subscriptions": subscriptions,
        "documents": lanes.iter().map(|lane| lane.documents).sum::<u64>(),
        "tombstones": lanes.iter().map(|lane| lane.tombstones).sum::<u64>(),
    });
    if let Some(telemetry) = &app.telemetry {
        status["telemetry"] = json!(telemetry.view());
    }
    Ok(body::answer(StatusCode::OK, &status))
}
