//! `GET /resources/:rid/subscriptions/:id/attempts` and `.../attempts/:attempt`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::observe::{AttemptDetail, AttemptView};
use flare_core::observe::{Outcome, Wanted};
use flare_model::ids::{ResourceId, SubscriptionId};
use http::{StatusCode, Uri};

use super::{Ids, ids};
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::{self, PageQuery};
use crate::{AppState, body};
use serde_json::json;

/// Lists the last attempts.
pub async fn list(State(app): AppState, path: Ids, uri: Uri) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let page = PageQuery::read(&app, &uri, &["document", "outcome"])?;
    let mut wanted = Wanted::default();
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "document" => wanted.document = Some(app.document_url(&value)?.to_string()),
            "outcome" => wanted.outcome = Some(outcome(&value)?),
            _ => {}
        }
    }
    let found = app.attempts(&resource, &id, &wanted, page.offset, page.limit)?;
    Ok(page.answer(found.total, "attempts", found.attempts))
}

/// Shows one attempt.
pub async fn show(
    State(app): AppState,
    Path((resource, id, attempt)): Path<(String, String, String)>,
) -> Result<Response, ApiError> {
    let (resource, id) = (ResourceId::new(resource), SubscriptionId::new(id));
    Ok(body::answer(StatusCode::OK, &app.attempt(&resource, &id, &attempt)?))
}

fn outcome(value: &str) -> Result<Outcome, ApiError> {
    let found = Outcome::NAMES.iter().find(|(name, _)| *name == value);
    found.map(|(_, outcome)| *outcome).ok_or_else(|| {
        let names = Outcome::NAMES.map(|(name, _)| name).join(", ");
        ApiError::bad_request(format!("outcome must be one of {names}, got `{value}`"))
    })
}

/// What the description says of the list.
pub fn describe_list(it: &mut Notes<'_>) {
    it.is("listAttempts", "Subscriptions", "List the last attempts")
        .pages()
        .query(
            "document",
            json!({"type": "string", "format": "document-url", "minLength": 1}),
            "Only attempts about this document.",
            json!(examples::DOCUMENT),
        )
        .query(
            "outcome",
            json!({"enum": Outcome::NAMES.map(|(name, _)| name)}),
            "Only attempts that ended so.",
            json!("failed"),
        )
        .answers_list::<AttemptView>("attempts", "The newest first.", examples::attempt());
}

/// What the description says of one.
pub fn describe_show(it: &mut Notes<'_>) {
    let mut attempt = examples::attempt();
    (attempt["request"], attempt["response"]) = examples::exchange();
    it.is("getAttempt", "Subscriptions", "Show an attempt")
        .answers::<AttemptDetail>(
            200,
            "With what was sent and what came back, as far as it was kept; secrets are taken out.",
            attempt,
        )
        .refuses(404, "There is no such attempt, or it is no longer kept.");
}
