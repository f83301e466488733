//! `/documents`: what origins say, and what Flare has.

pub mod bulk;
pub mod delete;
pub mod get;
pub(crate) mod lines;
pub mod put;

use axum::response::{IntoResponse, Response};
use flare_core::journey::accept::{Draft, Word};
use flare_core::operations::App;
use flare_core::telemetry::Accepting;
use flare_model::access::Caller;
use flare_model::document::Outcome;
use flare_model::url::DocumentUrl;
use http::header::{HeaderName, HeaderValue};
use http::{StatusCode, Uri};

use super::error::ApiError;
use super::page;

const FLARE_OUTCOME: HeaderName = HeaderName::from_static("flare-outcome");

/// What the header says, in the description.
const OUTCOME: &str =
    "What became of it. An equal revision is `unchanged`, whatever its content; an older one `stale`.";

/// The url of the document in the path of a request.
fn url(uri: &Uri) -> Result<DocumentUrl, ApiError> {
    if uri.query().is_some() {
        return Err(ApiError::bad_request("a document's url has no query string"));
    }
    url_in(uri)
}

fn url_in(uri: &Uri) -> Result<DocumentUrl, ApiError> {
    let rest = uri.path().strip_prefix("/documents/").unwrap_or_default();
    DocumentUrl::from_request_path(rest).map_err(|error| ApiError::bad_request(error.to_string()))
}

/// The url, and whether its tombstone is meant (`?tombstone=true`).
fn url_or_tombstone(uri: &Uri) -> Result<(DocumentUrl, bool), ApiError> {
    let Some(query) = uri.query() else { return Ok((url_in(uri)?, false)) };
    match page::pairs_of(query).as_slice() {
        [(name, value)] if name == "tombstone" => Ok((url_in(uri)?, page::boolean("tombstone", value)?)),
        _ => Err(ApiError::bad_request("a document's url has no query string, but for `?tombstone=true`")),
    }
}

/// Commits one word and answers 202 with what became of it.
async fn accept(
    app: &App,
    by: &Caller,
    url: DocumentUrl,
    word: Word,
    mut span: Option<Box<Accepting>>,
) -> Result<Response, ApiError> {
    if let Some(span) = &mut span {
        span.about(url.as_str(), app.registry.find_for(by, &url));
    }
    let outcome = commit(app, by, url, word, &mut span).await;
    if let Some(mut span) = span {
        let status = outcome.as_ref().map_or_else(ApiError::status, |_| StatusCode::ACCEPTED);
        span.answered(status.as_u16(), outcome.as_ref().ok().copied());
    }
    let mut response = StatusCode::ACCEPTED.into_response();
    response.headers_mut().insert(FLARE_OUTCOME, HeaderValue::from_static(outcome?.as_str()));
    Ok(response)
}

async fn commit(
    app: &App,
    by: &Caller,
    url: DocumentUrl,
    word: Word,
    span: &mut Option<Box<Accepting>>,
) -> Result<Outcome, ApiError> {
    let drafts = vec![app.draft_anywhere(by, url, word).await?];
    if let Some(span) = span {
        span.committing(drafts.iter().map(Draft::write));
    }
    let committed = app.commit(drafts).await;
    if let Some(span) = span {
        span.committed();
    }
    Ok(committed?.pop().expect("one write has one outcome")?)
}
