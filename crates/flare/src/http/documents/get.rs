//! `GET /documents/{url}`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::{BufMut, BytesMut};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{StatusCode, Uri};

use crate::http::AppState;
use crate::http::error::ApiError;

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
