//! `GET /documents/{url}`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, BytesMut};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{StatusCode, Uri};

use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::AppState;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use serde_json::json;

/// A document. The answer is written by hand, so that the content stays as it is.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "it describes what is written by hand; the tests hold it to that")]
struct DocumentView {
    /// Its url, normalised.
    id: String,
    /// Its revision.
    revision: Revision,
    /// When Flare accepted this state.
    updated_at: Timestamp,
    /// What the origin sent.
    content: Map<String, Value>,
}

/// Shows the newest state of a document, the content byte by byte as the origin sent it.
pub async fn handle(State(app): AppState, uri: Uri) -> Result<Response, ApiError> {
    let url = super::url(&uri)?;
    let unknown = || ApiError::not_found(format!("there is no document {url}"));
    let resource = app.registry.find(&url).ok_or_else(unknown)?;
    let found = app.store.documents.get(resource.lane_of(url.as_str()), url.as_str()).await?;
    let document = found.filter(|document| !document.row.deleted).ok_or_else(unknown)?;
    let head = serde_json::json!({
        "id": &*document.url,
        "revision": &document.revision,
        "updatedAt": document.updated_at,
    });
    let head = head.to_string();
    let mut body = BytesMut::with_capacity(head.len() + document.content.len() + 16);
    body.put_slice(&head.as_bytes()[..head.len() - 1]);
    body.put_slice(b",\"content\":");
    body.put_slice(&document.content);
    body.put_slice(b"}");
    let mut response = (StatusCode::OK, body.freeze()).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getDocument", "Documents", "Show a document")
        .answers::<DocumentView>(
            200,
            "The newest state; the content is as the origin sent it, byte for byte.",
            json!({
                "id": examples::DOCUMENT, "revision": 1, "updatedAt": examples::TIME,
                "content": {"version": 1, "name": "Ada"},
            }),
        )
        .refuses(400, "The url is none that a document can have.");
}
