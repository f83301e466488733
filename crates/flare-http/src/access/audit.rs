//! `GET /audit?since=`: what was done, by whom.

use axum::extract::State;
use axum::response::Response;
use flare_core::operations::{ActView, AuditQuery};
use flare_model::time::Timestamp;
use http::Uri;
use serde_json::json;

use super::By;
use crate::AppState;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::{self, PageQuery};

/// Lists what was done, the last first.
pub async fn list(State(app): AppState, By(by): By, uri: Uri) -> Result<Response, ApiError> {
    let page = PageQuery::read(&app, &uri, &["since"])?;
    let given = page::given(&uri)?.into_iter().find(|(name, _)| name == "since");
    let since = given.map(|(_, value)| time("since", &value)).transpose()?;
    let query = AuditQuery { since, offset: page.offset, limit: page.limit };
    let acts = app.audit(&by, query).await?;
    Ok(page.answer(acts.total as u64, "events", acts.entries))
}

/// A time of a query.
fn time(name: &str, value: &str) -> Result<Timestamp, ApiError> {
    serde_json::from_value(value.into())
        .map_err(|_| ApiError::bad_request(format!("{name} must be a time as in RFC 3339, got `{value}`")))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let since = it.schema::<Timestamp>();
    it.is("listAudit", "Access", "What was done, by whom")
        .text("Every act that changes something but documents, the last first. Of the account; the operator who names none \
               with `Flare-Account` sees those of all accounts.")
        .pages()
        .query("since", since, "Only what was done at this time or later.", json!(examples::TIME))
        .answers_list::<ActView>("events", "The last first.", json!({
            "at": examples::TIME, "account": "default", "token": {"id": examples::TOKEN, "name": "shop"},
            "address": "127.0.0.1", "operation": "createResource", "target": "/resources/res_1", "status": 201,
        }))
        .refuses(404, "There is no authentication.");
}
