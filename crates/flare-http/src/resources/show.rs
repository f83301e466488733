//! `GET /resources/:id`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::ResourceId;
use http::StatusCode;

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use flare_model::resource::ResourceView;

/// Shows a resource.
pub async fn handle(State(app): AppState, Path(id): Path<String>) -> Result<Response, ApiError> {
    let resource = app.registry.resource(&ResourceId::new(id.as_str()));
    let resource = resource.ok_or_else(|| ApiError::not_found(format!("there is no resource {id}")))?;
    Ok(body::answer(StatusCode::OK, &resource.view))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getResource", "Resources", "Show a resource").answers::<ResourceView>(
        200,
        "The resource.",
        examples::resource(),
    );
}
