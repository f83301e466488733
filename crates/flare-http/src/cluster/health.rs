//! `GET /cluster/health`.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use flare_core::operations::{ClusterColour, HealthQuery, HealthView};
use flare_model::duration::HumanDuration;
use http::{StatusCode, Uri};
use serde_json::json;

use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, body, page, query};

/// How long it is waited for where the request does not say.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long at most.
const LONGEST: Duration = Duration::from_secs(300);

/// Says how the cluster fares, at once or when it fares so.
pub async fn handle(State(app): AppState, uri: Uri) -> Result<Response, ApiError> {
    let mut asked = HealthQuery { wait: None, timeout: TIMEOUT };
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "wait" => {
                asked.wait = Some(match value.as_str() {
                    "green" => ClusterColour::Green,
                    "yellow" => ClusterColour::Yellow,
                    other => {
                        let detail = format!("wait must be green or yellow, got `{other}`");
                        return Err(ApiError::bad_request(detail));
                    }
                });
            }
            "timeout" => asked.timeout = query::duration("timeout", &value)?.0.min(LONGEST),
            other => return Err(page::unknown(other, &["wait", "timeout"])),
        }
    }
    let (health, reached) = app.health(asked).await;
    let status = if reached { StatusCode::OK } else { StatusCode::REQUEST_TIMEOUT };
    Ok(body::answer(status, &health))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let example = json!({
        "status": "green", "reasons": [], "name": "flare", "leader": "node-a", "leaderEpoch": 7,
        "nodes": {"total": 3, "live": 3, "draining": 0},
        "units": {"total": 1001, "running": 1001, "assigned": 0, "draining": 0, "orphaned": 0, "unassigned": 0},
        "store": {"engine": "postgresql", "reachable": true}, "coordinator": {"engine": "etcd", "reachable": true},
    });
    let duration = it.schema::<HumanDuration>();
    it.is("getClusterHealth", "Cluster", "Whether every unit runs, and if not, why")
        .query(
            "wait",
            json!({"type": "string", "enum": ["green", "yellow"]}),
            "Answer when the cluster fares so, or better.",
            json!("green"),
        )
        .query(
            "timeout",
            json!({"allOf": [duration], "default": "30s"}),
            "For how long that is waited for, 5m at most.",
            json!("1s"),
        )
        .answers::<HealthView>(200, "How it fares, as this node sees it.", example.clone())
        .answers::<HealthView>(408, "It did not fare so in time; the body says how it does.", example);
}
