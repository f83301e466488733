//! `/documents`: what origins say, and what Flare has.

pub mod bulk;
pub mod delete;
pub mod get;
pub mod put;

use axum::response::{IntoResponse, Response};
use flare_model::document::Outcome;
use flare_model::url::DocumentUrl;
use http::header::{HeaderName, HeaderValue};
use http::{StatusCode, Uri};

use super::error::ApiError;
use crate::journey::accept::Word;
use crate::operations::App;

const FLARE_OUTCOME: HeaderName = HeaderName::from_static("flare-outcome");

/// The url of the document in the path of a request.
fn url(uri: &Uri) -> Result<DocumentUrl, ApiError> {
    if uri.query().is_some() {
        return Err(ApiError::bad_request("a document's url has no query string"));
    }
    let rest = uri.path().strip_prefix("/documents/").unwrap_or_default();
    DocumentUrl::from_request_path(rest).map_err(|error| ApiError::bad_request(error.to_string()))
}

/// Commits one word and answers 202 with what became of it.
async fn accept(app: &App, url: DocumentUrl, word: Word) -> Result<Response, ApiError> {
    let draft = app.draft(url, word)?;
    let outcome = app.commit(vec![draft]).await?.pop();
    let outcome: Outcome = outcome.expect("one write has one outcome")?;
    let mut response = StatusCode::ACCEPTED.into_response();
    response.headers_mut().insert(FLARE_OUTCOME, HeaderValue::from_static(outcome.as_str()));
    Ok(response)
}
