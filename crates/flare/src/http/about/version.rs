//! `GET /`: the version.

use axum::response::Response;
use http::StatusCode;

use crate::http::body;
use crate::version;

/// Answers name and version.
pub async fn handle() -> Response {
    #[derive(serde::Serialize)]
    struct Hello {
        name: &'static str,
        #[serde(flatten)]
        version: version::Version,
    }
    body::answer(StatusCode::OK, &Hello { name: "Flare", version: version::THIS })
}
