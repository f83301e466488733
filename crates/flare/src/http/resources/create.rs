//! `POST /resources`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;

use crate::http::error::ApiError;
use crate::http::{AppState, body};

/// Creates a resource.
pub async fn handle(State(app): AppState, headers: HeaderMap, body: Body) -> Result<Response, ApiError> {
    let draft = body::json(&body::read(&app, &headers, body).await?)?;
    let resource = app.create_resource(draft).await?;
    Ok(body::created(&format!("/resources/{}", resource.id()), &resource.view))
}
