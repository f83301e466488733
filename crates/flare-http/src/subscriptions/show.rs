//! `GET /resources/:rid/subscriptions/:id`.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::{Ids, Shown, ids};
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use flare_model::subscription::View;

/// Shows a subscription.
pub async fn handle(State(app): AppState, path: Ids) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let subscription = app.subscription(&resource, &id)?;
    Ok(body::answer(StatusCode::OK, &Shown::from(app.view(&subscription).await?)))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getSubscription", "Subscriptions", "Show a subscription").answers::<View>(
        200,
        "The subscription.",
        examples::subscription(),
    );
}
