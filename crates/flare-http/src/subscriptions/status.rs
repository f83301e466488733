//! `GET /resources/:rid/subscriptions/:id/status`.

use axum::extract::State;
use axum::response::Response;
use flare_core::operations::StatusView;
use http::StatusCode;

use super::{Ids, ids};
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};

/// Says how a subscription stands.
pub async fn handle(State(app): AppState, path: Ids) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    Ok(body::answer(StatusCode::OK, &app.status(&resource, &id).await?))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getSubscriptionStatus", "Subscriptions", "How a subscription stands").answers::<StatusView>(
        200,
        "Its feed, counts, the last success and failure, and what its expressions left out.",
        examples::status(),
    );
}
