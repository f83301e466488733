//! `DELETE /resources/:rid/subscriptions/:id`.

use axum::extract::State;
use http::StatusCode;

use super::{Ids, ids};
use crate::http::AppState;
use crate::http::error::ApiError;

/// Deletes a subscription with its state.
pub async fn handle(State(app): AppState, path: Ids) -> Result<StatusCode, ApiError> {
    let (resource, id) = ids(path);
    app.delete_subscription(&resource, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
