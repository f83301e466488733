//! `GET /`: the version; a browser is sent on to the web interface.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use flare_core::version::Version;
use http::header::{ACCEPT, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::HOME;
use crate::openapi::Notes;
use crate::{AppState, body};

/// Which Flare this is.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Version")]
struct Hello {
    /// `Flare`.
    name: &'static str,
    #[serde(flatten)]
    version: Version,
}

/// Answers name and version.
pub async fn handle(State(app): AppState, headers: HeaderMap) -> Response {
    let is_browser = headers.get(ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(b"text/html"));
    let mut response = match is_browser && app.config.ui.enabled {
        true => Redirect::to(HOME).into_response(),
        false => body::answer(StatusCode::OK, &Hello { name: "Flare", version: app.about.version }),
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getVersion", "Node", "Name and version")
        .never_fails()
        .answers::<Hello>(
            200,
            "Which Flare this is.",
            json!({"name": "Flare", "version": "0.1.0", "sha": "0123456789ab", "buildTime": "2026-11-15T08:00:00Z"}),
        )
        .answers_nothing(303, "To the web interface: an `Accept` that begins with `text/html` asks for it.");
}
