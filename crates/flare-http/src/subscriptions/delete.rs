//! `DELETE /resources/:rid/subscriptions/:id`.

use axum::extract::State;
use http::StatusCode;

use super::{Ids, ids};
use crate::AppState;
use crate::error::ApiError;
use crate::openapi::Notes;

/// Deletes a subscription with its state.
pub async fn handle(State(app): AppState, path: Ids) -> Result<StatusCode, ApiError> {
    let (resource, id) = ids(path);
    app.delete_subscription(&resource, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("deleteSubscription", "Subscriptions", "Delete a subscription")
        .answers_nothing(204, "It is gone, and its state with it. An open attempt may still finish.");
}
