//! `GET` and `DELETE /resources/:rid/subscriptions/:id/dead-letters`.

use axum::extract::State;
use axum::response::Response;
use http::{StatusCode, Uri};

use super::{Ids, ids};
use crate::http::AppState;
use crate::http::error::ApiError;
use crate::http::page::{self, PageQuery};

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
    for (name, value) in page::pairs(&uri) {
        match name.as_str() {
            "document" => document = Some(value),
            other => return Err(page::unknown(other, &["document"])),
        }
    }
    app.drop_dead_letters(&resource, &id, document.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}
