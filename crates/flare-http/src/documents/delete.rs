//! `DELETE /documents/{url}`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use flare_core::journey::accept::Word;
use flare_core::telemetry::Operation;
use http::{HeaderMap, StatusCode, Uri};

use crate::AppState;
use crate::access::By;
use crate::error::ApiError;
use crate::openapi::Notes;
use serde_json::json;

/// Leaves a tombstone.
pub async fn handle(
    State(app): AppState,
    By(by): By,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (url, tombstone) = super::url_or_tombstone(&uri)?;
    if tombstone {
        if headers.contains_key("flare-revision") {
            return Err(ApiError::bad_request(
                "Flare-Revision: goes with the delete of a document, not of its tombstone",
            ));
        }
        app.remove_tombstone(&by, &url).await?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let revision = revision(&headers)?;
    let span = app.tracer().and_then(|tracer| tracer.begin(&headers, Operation::Delete));
    super::accept(&app, &by, url, Word::Delete(revision), span).await
}

/// The revision of the delete, where the request names one.
fn revision(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut given = headers.get_all("flare-revision").iter();
    let Some(value) = given.next() else { return Ok(None) };
    if given.any(|other| other != value) {
        return Err(ApiError::bad_request("Flare-Revision: is given twice, and not the same"));
    }
    let text = String::from_utf8(value.as_bytes().to_vec());
    text.map(Some).map_err(|_| ApiError::bad_request("Flare-Revision: is not UTF-8"))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("deleteDocument", "Documents", "The document is gone")
        .text(
            "Leaves a tombstone, so that a late PUT with an older revision is ignored. With `tombstone=true` that goes, and \
             whatever is said of the url next is new.",
        );
    super::get::describe_tombstone(it, "Whether the tombstone is to be removed.");
    it.header(
            "Flare-Revision",
            json!({"type": "string", "format": "flare-revision"}),
            "The revision of the delete, of the kind that the document has. Without it the tombstone takes the current one.",
            json!("2"),
        )
        .answers_nothing(202, "Accepted.")
        .answers_nothing(204, "The tombstone is gone, on stable storage.")
        .refuses(404, "No resource has such a url, or there is no tombstone of it.")
        .refuses(409, "A subscription still needs the tombstone.")
        .with_header(202, "Flare-Outcome", json!({"enum": ["deleted", "stale", "absent"]}), super::OUTCOME);
}
