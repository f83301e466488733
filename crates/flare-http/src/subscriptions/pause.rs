//! `POST /resources/:rid/subscriptions/:id/pause`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde_json::json;

use super::{Ids, Shown, ids};
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use flare_model::subscription::{PauseDraft, PausedBy, View};

/// Stops a subscription; safe to repeat.
pub async fn handle(
    State(app): AppState,
    path: Ids,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let draft: PauseDraft = body::optional(&body::read(&app, &headers, body).await?)?;
    let subscription = app.pause(&resource, &id, PausedBy::Api, draft).await?;
    Ok(body::answer(StatusCode::OK, &Shown::from(app.view(&subscription).await?)))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("pauseSubscription", "Subscriptions", "Stop a subscription")
        .text("Safe to repeat. Whoever looks at it is told the reason, where there is one.")
        .optional_body::<PauseDraft>(json!({"reason": "their database is being moved"}))
        .answers::<View>(200, "The subscription.", examples::subscription());
}
