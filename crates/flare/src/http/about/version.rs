//! `GET /`: the version.

use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::body;
use crate::http::openapi::Notes;
use crate::version;
use serde_json::json;

/// Which Flare this is.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Version")]
struct Hello {
    /// `Flare`.
    name: &'static str,
    #[serde(flatten)]
    version: version::Version,
}

/// Answers name and version.
pub async fn handle() -> Response {
    body::answer(StatusCode::OK, &Hello { name: "Flare", version: version::THIS })
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getVersion", "Node", "Name and version").never_fails().answers::<Hello>(
        200,
        "Which Flare this is.",
        json!({"name": "Flare", "version": "0.1.0", "sha": "0123456789ab", "buildTime": "2026-11-15T08:00:00Z"}),
    );
}
