//! `DELETE /resources/:id`.

use axum::extract::{Path, State};
use flare_model::ids::ResourceId;
use http::StatusCode;

use crate::AppState;
use crate::error::ApiError;
use crate::openapi::Notes;

/// Deletes a resource that has no subscriptions.
pub async fn handle(State(app): AppState, Path(id): Path<String>) -> Result<StatusCode, ApiError> {
    app.delete_resource(&ResourceId::new(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("deleteResource", "Resources", "Delete a resource")
        .answers_nothing(204, "It is gone, and its documents with it.")
        .refuses(409, "It has subscriptions; delete them first.");
}
