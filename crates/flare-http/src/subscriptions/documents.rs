//! `GET /resources/:rid/subscriptions/:id/documents`.

use axum::extract::State;
use axum::response::Response;
use flare_core::operations::DriftView;
use flare_core::operations::{DriftPlace, DriftQuery};
use http::Uri;

use super::{Ids, ids};
use crate::AppState;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::{self, PageQuery, Total};
use serde_json::json;

/// Lists what the client has and lacks.
pub async fn handle(State(app): AppState, path: Ids, uri: Uri) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let page = PageQuery::read(&app, &uri, &["lagging", "after"])?;
    let mut query = DriftQuery { lagging: false, limit: page.limit, offset: page.offset, after: None };
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "lagging" => query.lagging = page::boolean("lagging", &value)?,
            "after" => query.after = Some(place(&value)?),
            _ => {}
        }
    }
    if query.offset > DriftQuery::SKIP {
        let most = DriftQuery::SKIP;
        let detail = format!("offset may be {most} at most here; go on with after=, as pagination.next says");
        return Err(ApiError::bad_request(detail));
    }
    let found = app.drift(&resource, &id, query).await?;
    let next = found.next.map(|next| next.to_string());
    let total = Total { total: found.total, is_bound: found.total_is_bound };
    Ok(page.answer_with_next(total, next, "documents", found.documents))
}

fn place(value: &str) -> Result<DriftPlace, ApiError> {
    value.parse().map_err(|()| {
        ApiError::bad_request(format!(
            "after must be what pagination.next of an earlier page said, got `{value}`"
        ))
    })
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("listDrift", "Subscriptions", "What the client has and lacks")
        .text(format!("`offset` may be {} at most here; go on with `after`.", DriftQuery::SKIP))
        .pages()
        .query(
            "lagging",
            json!({"enum": ["true", "false"], "default": "false"}),
            "Only documents of which the client lacks something: owed, given up, discarded, dropped, or in doubt.",
            json!("true"),
        )
        .query(
            "after",
            json!({"type": "string", "pattern": DriftPlace::PATTERN}),
            "What `pagination.next` of the page before said.",
            json!("s3.130"),
        )
        .answers_list::<DriftView>(
            "documents",
            "Documents and how far the client is with each.",
            json!({"document": examples::DOCUMENT, "revision": 2, "clientHas": "older",
                "owed": true,
                "why": "waiting for retry at 2026-11-15T08:30:10.000Z after 3 failed attempts, the last answered 503"}),
        );
}
