//! `DELETE /resources/:id`.

use axum::extract::{Path, State};
use flare_model::ids::ResourceId;
use http::StatusCode;

use crate::http::AppState;
use crate::http::error::ApiError;

/// Deletes a resource that has no subscriptions.
pub async fn handle(State(app): AppState, Path(id): Path<String>) -> Result<StatusCode, ApiError> {
    app.delete_resource(&ResourceId::new(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}
