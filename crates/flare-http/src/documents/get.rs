//! `GET /documents/{url}`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, BytesMut};
use flare_model::document::Document;
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{StatusCode, Uri};

use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::access::By;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
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
    /// What the origin sent; of a tombstone nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Map<String, Value>>,
    /// It is a tombstone; otherwise absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<bool>,
}

/// Shows the newest state of a document, the content byte by byte as the origin sent it.
pub async fn handle(State(app): AppState, By(by): By, uri: Uri) -> Result<Response, ApiError> {
    let (url, tombstone) = super::url_or_tombstone(&uri)?;
    if tombstone {
        return Ok(body::answer(StatusCode::OK, &tombstone_of(&app.tombstone(&by, &url).await?)));
    }
    let unknown = || ApiError::not_found(format!("there is no document {url}"));
    let resource = app.registry.find_for(&by, &url).ok_or_else(unknown)?;
    let found = app.store.documents.get(resource.lane_of(url.as_str()), url.as_str()).await?;
    let document = found.filter(|document| !document.row.deleted).ok_or_else(unknown)?;
    let head = serde_json::json!({
        "id": &*document.url,
        "revision": &document.revision,
        "updatedAt": document.updated_at,
    });
    let head = head.to_string();
    let mut whole = BytesMut::with_capacity(head.len() + document.content.len() + 16);
    whole.put_slice(&head.as_bytes()[..head.len() - 1]);
    whole.put_slice(b",\"content\":");
    whole.put_slice(&document.content);
    whole.put_slice(b"}");
    let mut response = (StatusCode::OK, whole.freeze()).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn tombstone_of(document: &Document) -> Value {
    let Document { url, revision, updated_at, .. } = document;
    json!({"id": &**url, "revision": revision, "updatedAt": updated_at, "deleted": true})
}

/// `tombstone` in a query.
pub(super) fn describe_tombstone(it: &mut Notes<'_>, text: &str) {
    it.query("tombstone", json!({"type": "boolean", "default": false}), text, json!(false));
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getDocument", "Documents", "Show a document")
        .text("With `tombstone=true` the tombstone of one that was deleted: `id`, `revision`, `updatedAt` and `deleted`.");
    describe_tombstone(it, "Whether the tombstone is meant and not the document.");
    it.answers::<DocumentView>(
        200,
        "The newest state; the content is as the origin sent it, byte for byte.",
        json!({
            "id": examples::DOCUMENT, "revision": 1, "updatedAt": examples::TIME,
            "content": {"version": 1, "name": "Ada"},
        }),
    )
    .refuses(400, "The url is none that a document can have.");
}
