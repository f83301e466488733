//! `DELETE /documents/{url}`.

use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Uri};

use crate::http::AppState;
use crate::http::error::ApiError;
use crate::journey::accept::Word;
use crate::telemetry::Operation;

/// Leaves a tombstone.
pub async fn handle(State(app): AppState, uri: Uri, headers: HeaderMap) -> Result<Response, ApiError> {
    let url = super::url(&uri)?;
    let revision = match headers.get("flare-revision") {
        None => None,
        Some(value) => Some(
            String::from_utf8(value.as_bytes().to_vec())
                .map_err(|_| ApiError::bad_request("Flare-Revision: is not UTF-8"))?,
        ),
    };
    let span = app.tracer().and_then(|tracer| tracer.begin(&headers, Operation::Delete));
    super::accept(&app, url, Word::Delete(revision), span).await
}
