//! `PUT /documents/{url}`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Uri};

use crate::http::error::ApiError;
use crate::http::{AppState, body};
use crate::journey::accept::Word;
use crate::telemetry::Operation;

/// Accepts a document.
pub async fn handle(
    State(app): AppState,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let url = super::url(&uri)?;
    let span = app.tracer().and_then(|tracer| tracer.begin(&headers, Operation::Put));
    let content = body::read(&app, &headers, body).await?;
    super::accept(&app, url, Word::Put(content), span).await
}
