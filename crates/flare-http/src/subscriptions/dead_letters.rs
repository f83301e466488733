//! `GET` and `DELETE /resources/:rid/subscriptions/:id/dead-letters`.

use axum::extract::State;
use axum::response::Response;
use flare_core::operations::DeadLetterView;
use http::{StatusCode, Uri};

use super::{Ids, ids};
use crate::AppState;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::{self, PageQuery};
use serde_json::json;

/// Lists dead letters.
pub async fn list(State(app): AppState, path: Ids, uri: Uri) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let page = PageQuery::read(&app, &uri, &[])?;
    let found = app.dead_letters(&resource, &id, page.offset as u64, page.limit as u64).await?;
    Ok(page.answer(found.total, "deadLetters", found.letters))
}

/// Drops one (`?document=URL`), or all.
pub async fn discard(State(app): AppState, path: Ids, uri: Uri) -> Result<StatusCode, ApiError> {
    let (resource, id) = ids(path);
    let mut document = None;
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "document" => document = Some(value),
            other => return Err(page::unknown(other, &["document"])),
        }
    }
    app.drop_dead_letters(&resource, &id, document.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What the description says of the list.
pub fn describe_list(it: &mut Notes<'_>) {
    it.is("listDeadLetters", "Subscriptions", "List what was given up").pages().answers_list::<DeadLetterView>(
        "deadLetters",
        "What the policy of the subscription gave up, until it is replayed, replaced or dropped.",
        json!({
            "document": examples::DOCUMENT, "revision": 1, "action": "create", "attempts": 50,
            "firstAttemptAt": "2026-11-12T08:30:00.000Z", "lastAttemptAt": examples::TIME, "status": 500, "error": null,
            "response": "no database",
        }),
    );
}

/// What the description says of dropping them.
pub fn describe_discard(it: &mut Notes<'_>) {
    it.is("dropDeadLetters", "Subscriptions", "Drop what was given up")
        .text("One with `document`, all without. What the client is taken to have stays as it is.")
        .query(
            "document",
            json!({"type": "string", "format": "document-url", "minLength": 1}),
            "Only the dead letter of this document.",
            json!(examples::DOCUMENT),
        )
        .answers_nothing(204, "They are gone.")
        .refuses(404, "There is no such subscription, or no dead letter of that document.");
}
