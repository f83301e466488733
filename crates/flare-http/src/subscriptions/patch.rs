//! `PATCH /resources/:rid/subscriptions/:id`, a JSON Merge Patch.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};

use super::{Ids, ids};
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use flare_model::subscription::{Draft, View};
use serde_json::json;
use serde_json::value::RawValue;

/// Changes a subscription.
pub async fn handle(
    State(app): AppState,
    path: Ids,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let bytes = body::read(&app, &headers, body).await?;
    let patch: &RawValue = body::json(&bytes)?;
    let subscription = app.patch_subscription(&resource, &id, patch).await?;
    Ok(body::answer(StatusCode::OK, &app.view(&subscription).await?))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("changeSubscription", "Subscriptions", "Change a subscription")
        .text(
            "A JSON Merge Patch (RFC 7396) of what a user gave: `null` brings a default back. `start`, `secret` and the \
             fields that Flare adds cannot be in it. A changed `filter` decides every document again.",
        )
        .patch_body::<Draft>(
            &["start", "secret"],
            json!({"delivery": {"timeout": "5s", "retry": null}}),
        )
        .answers::<View>(200, "The subscription.", examples::subscription())
        .refuses(
            409,
            "Another subscription has that url for the same action, or somebody else changed it at the same moment.",
        );
}
