//! `POST /resources`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;

use crate::access::By;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use flare_model::resource::{ResourceDraft, ResourceView};
use serde_json::json;

/// Creates a resource.
pub async fn handle(
    State(app): AppState,
    By(by): By,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let draft = body::json(&body::read(&app, &headers, body).await?)?;
    let resource = app.create_resource(&by.account, draft).await?;
    Ok(body::created(&format!("/resources/{}", resource.id()), &resource.view))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let lanes = it.config.domain.lanes;
    it.is("createResource", "Resources", "Create a resource")
        .text("A resource says which documents are tracked, and where their revision is. It cannot be changed.")
        .bound("ResourceDraft", "lanes", json!({"default": lanes}))
        .body::<ResourceDraft>(json!({
            "endpoint": "http://api.company.com/users/{id}", "change": {"field": "version"},
        }))
        .answers::<ResourceView>(201, "The resource.", examples::resource())
        .with_location(201)
        .refuses(
            409,
            "A resource has the same shape (scheme, host and path with wildcard names ignored), or the new one would \
             capture documents of another.",
        );
}
