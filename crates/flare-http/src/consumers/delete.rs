//! `DELETE /consumers/:id`.

use axum::extract::{Path, State};
use flare_model::ids::ResourceId;
use http::StatusCode;

use crate::AppState;
use crate::error::ApiError;
use crate::openapi::Notes;

/// Deletes a consumer that has no producers.
pub async fn handle(State(app): AppState, Path(id): Path<String>) -> Result<StatusCode, ApiError> {
    app.delete_consumer(&ResourceId::new(id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("deleteConsumer", "Consumers", "Delete a consumer")
        .answers_nothing(204, "It is gone, with its documents, its dead letters, and how far it had read.")
        .refuses(409, "It has producers; delete them first.");
}
