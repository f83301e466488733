//! `PUT /documents/{url}`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use flare_core::journey::accept::Word;
use flare_core::telemetry::Operation;
use http::{HeaderMap, Uri};

use crate::access::By;
use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, body};
use serde_json::json;

/// Accepts a document.
pub async fn handle(
    State(app): AppState,
    By(by): By,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let url = super::url(&uri)?;
    let span = app.tracer().and_then(|tracer| tracer.begin(&headers, Operation::Put));
    let content = body::read(&app, &headers, body).await?;
    super::accept(&app, &by, url, Word::Put(content), span).await
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("putDocument", "Documents", "This is the document now")
        .text(
            "Only a newer revision wins; the revision is where the resource's `change.field` says. The answer comes once \
             what it reports is on stable storage.",
        )
        .body_as(
            "application/json",
            json!({"type": "object", "description": "The document, as clients are to have it."}),
            true,
            json!({"version": 1, "name": "Ada"}),
        )
        .answers_nothing(202, "Accepted.")
        .with_header(202, "Flare-Outcome", json!({"enum": ["created", "updated", "unchanged", "stale"]}), super::OUTCOME);
}
