//! `GET /`: the version; a browser is sent on to the web interface.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use http::header::{ACCEPT, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::http::{AppState, body};
use crate::{ui, version};

/// Answers name and version.
pub async fn handle(State(app): AppState, headers: HeaderMap) -> Response {
    #[derive(serde::Serialize)]
    struct Hello {
        name: &'static str,
        #[serde(flatten)]
        version: version::Version,
    }
    let is_browser = headers.get(ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(b"text/html"));
    let mut response = match is_browser && app.config.ui.enabled {
        true => Redirect::to(ui::HOME).into_response(),
        false => body::answer(StatusCode::OK, &Hello { name: "Flare", version: version::THIS }),
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}
