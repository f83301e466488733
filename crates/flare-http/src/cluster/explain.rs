//! `GET /cluster/assignments/explain?unit=`.

use axum::extract::State;
use axum::response::Response;
use flare_core::operations::ExplanationView;
use flare_model::cluster::unit::NoUnit;
use http::{StatusCode, Uri};
use serde_json::json;

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body, page};

/// Says why a unit is where it is.
pub async fn handle(State(app): AppState, uri: Uri) -> Result<Response, ApiError> {
    let [asked] = page::required(&uri, ["unit"])?;
    // What is no unit's name is one that there is not.
    let unit = asked.parse().map_err(|error: NoUnit| ApiError::not_found(error.to_string()))?;
    Ok(body::answer(StatusCode::OK, &app.explain_unit(&unit)?))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let text = json!({"type": "string", "pattern": "^(subscription|producer|consumer|sweeper|sequencer)/[^/]+/[^/]+$"});
    it.is("explainAssignment", "Cluster", "Why a unit is where it is")
        .needs_query("unit", text, "The unit, percent-encoded.", json!("sweeper/retention/0"))
        .answers::<ExplanationView>(
            200,
            "What would become of it now, node by node and reason by reason.",
            json!({
                "unit": "sweeper/retention/0", "state": "running", "node": "node-a", "owner": "node-a", "epoch": 41,
                "verdict": "stays", "explanation": "node-b would be 4 % fuller than node-a after the move",
                "decided": {"at": examples::TIME, "by": "node-c", "leaderEpoch": 7, "reason": "balance"},
                "candidates": [{"node": "node-b", "decision": "worse", "load": 0.41, "loadAfter": 0.43,
                    "deciders": [{"decider": "alive", "decision": "yes", "detail": "it renews its lease"}]}],
                "history": [{"at": examples::TIME, "from": "node-c", "to": "node-a", "epoch": 41, "reason": "nodeGone"}],
            }),
        )
        .refuses(404, "There is no such unit.");
}
