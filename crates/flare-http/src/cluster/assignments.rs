//! `GET /cluster/assignments`.

use axum::extract::State;
use axum::response::Response;
use flare_core::operations::{AssignmentQuery, AssignmentView};
use flare_model::cluster::{NodeId, UnitId, UnitKind, UnitState};
use http::Uri;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::AppState;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::{self, PageQuery};

const QUERY: [&str; 4] = ["node", "kind", "state", "unit"];

/// Lists units, with where each should be and where it is.
pub async fn handle(State(app): AppState, uri: Uri) -> Result<Response, ApiError> {
    let page = PageQuery::read(&app, &uri, &QUERY)?;
    let mut asked = AssignmentQuery::default();
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "node" if value.is_empty() => {}
            "node" => asked.node = Some(NodeId::new(value)),
            "kind" => asked.kind = Some(word::<UnitKind>("kind", &value)?),
            "state" => asked.state = Some(word::<UnitState>("state", &value)?),
            "unit" => asked.unit = Some(unit(&value)?),
            _ => {}
        }
    }
    let all = app.assignments(&asked);
    let total = all.len() as u64;
    let part: Vec<AssignmentView> = all.into_iter().skip(page.offset).take(page.limit).collect();
    Ok(page.answer(total, "assignments", part))
}

fn unit(value: &str) -> Result<UnitId, ApiError> {
    value.parse().map_err(|error| ApiError::bad_request(format!("unit: {error}")))
}

fn word<T: DeserializeOwned>(name: &str, value: &str) -> Result<T, ApiError> {
    serde_json::from_value(Value::from(value))
        .map_err(|error| ApiError::bad_request(format!("{name}: {error}")))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let text = || json!({"type": "string"});
    let one = json!({"type": "string", "pattern": "^(subscription|producer|consumer|sweeper|sequencer)/[^/]+/[^/]+$"});
    it.is("listAssignments", "Cluster", "Which node should have which unit, and which has it")
        .query("node", text(), "Of this node, which should have them or has them.", json!("node-a"))
        .query(
            "kind",
            json!({"type": "string", "enum": ["subscription", "producer", "consumer", "sweeper", "sequencer"]}),
            "Of this kind.",
            json!("subscription"),
        )
        .query(
            "state",
            json!({"type": "string", "enum": ["unassigned", "assigned", "running", "draining", "orphaned"]}),
            "That are so.",
            json!("running"),
        )
        .query("unit", one, "This one.", json!("sweeper/retention/0"))
        .pages()
        .answers_list::<AssignmentView>(
            "assignments",
            "By name. `node` is where it should be, `owner` who has it.",
            json!({
                "unit": "subscription/sub_9w3kq0v7d1m5c2xj4f8t/0", "kind": "subscription", "node": "node-b", "owner": "node-a",
                "epoch": 41, "state": "draining", "lanes": [0, 2, 4, 6], "weight": 1.0, "reason": "balance",
                "since": examples::TIME,
            }),
        );
}
