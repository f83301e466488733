//! `GET /healthz`: the process lives. `GET /readyz`: its store answers, and takes writes.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::AppState;
use crate::body;
use crate::error::ApiError;
use crate::openapi::Notes;

/// How it is, in a word.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// `ok` or `ready`.
    status: &'static str,
}

/// The process lives.
pub async fn alive() -> Response {
    body::answer(StatusCode::OK, &Health { status: "ok" })
}

/// The store answers, and takes writes.
pub async fn ready(State(app): AppState) -> Response {
    match app.store.catalog.version().await {
        Ok(_) if app.is_late() => ApiError::unavailable(
            "the store takes no writes since the node began: what is stored can be read, and nothing is delivered",
        )
        .into_response(),
        Ok(_) if app.refuses_writes() => {
            ApiError::unavailable("the store takes no documents or records at the moment; the log says why")
                .into_response()
        }
        Ok(_) => body::answer(StatusCode::OK, &Health { status: "ready" }),
        Err(error) => ApiError::from(error).into_response(),
    }
}

/// What the description says of the first.
pub fn describe_alive(it: &mut Notes<'_>) {
    it.is("getHealth", "Node", "Whether the process lives").never_fails().answers::<Health>(
        200,
        "It serves requests.",
        json!({"status": "ok"}),
    );
}

/// What the description says of the second.
pub fn describe_ready(it: &mut Notes<'_>) {
    it.is("getReadiness", "Node", "Whether the store answers and takes writes").answers::<Health>(
        200,
        "It does.",
        json!({"status": "ready"}),
    );
}
