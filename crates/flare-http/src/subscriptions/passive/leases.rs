//! `GET` and `DELETE /resources/:rid/subscriptions/:id/leases`.

use axum::extract::State;
use axum::response::Response;
use flare_core::operations::{EndedView, LeaseView};
use http::{StatusCode, Uri};

use super::{Ids, ids};
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::PageQuery;
use crate::{AppState, body, page};
use serde_json::json;

/// Lists what is out.
pub async fn list(State(app): AppState, path: Ids, uri: Uri) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let page = PageQuery::read(&app, &uri, &[])?;
    let found = app.leases(&resource, &id, page.offset, page.limit).await?;
    Ok(page.answer(found.total, "leases", found.leases))
}

/// Ends one (`?document=URL`), or all.
pub async fn end(State(app): AppState, path: Ids, uri: Uri) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let mut document = None;
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "document" => document = Some(value),
            other => return Err(page::unknown(other, &["document"])),
        }
    }
    Ok(body::answer(StatusCode::OK, &app.end_leases(&resource, &id, document.as_deref()).await?))
}

/// What the description says of the list.
pub fn describe_list(it: &mut Notes<'_>) {
    it.is("listLeases", "Pull mode", "List what clients have on a lease").pages().answers_list::<LeaseView>(
        "leases",
        "What was handed out and is not settled yet, those that end first at the front.",
        json!({
            "document": examples::DOCUMENT, "action": "create", "revision": 1, "attempt": 1,
            "expiresAt": "2026-11-15T08:30:30.000Z",
        }),
    );
}

/// What the description says of ending them.
pub fn describe_end(it: &mut Notes<'_>) {
    it.is("endLeases", "Pull mode", "End leases before their time")
        .text(
            "That of one document with `document`, all without. Each counts as an attempt, its document goes back to the \
             feed at once, and its token is no longer good.",
        )
        .query(
            "document",
            json!({"type": "string", "format": "document-url", "minLength": 1}),
            "Only the lease of this document.",
            json!(examples::DOCUMENT),
        )
        .answers::<EndedView>(200, "How many were ended, on stable storage.", json!({"ended": 1}))
        .refuses(400, "The document is not a url.");
}
