//! `POST /resources/:rid/subscriptions/:id/secret/rotate`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use flare_core::operations::Rotation;
use flare_core::operations::RotationDraft;
use http::{HeaderMap, StatusCode};

use super::{Ids, ids};
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use flare_model::duration::HumanDuration;
use serde_json::json;

/// Gives a subscription another secret and shows it, once.
pub async fn handle(
    State(app): AppState,
    path: Ids,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let draft = body::optional(&body::read(&app, &headers, body).await?)?;
    Ok(body::answer(StatusCode::OK, &app.rotate_secret(&resource, &id, draft).await?))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let overlap = HumanDuration(it.config.auth.secret_overlap);
    it.is("rotateSecret", "Subscriptions", "Give it another secret")
        .text("Both secrets sign until the overlap is over. The same secret again changes nothing.")
        .bound("RotationDraft", "overlap", json!({"default": overlap}))
        .optional_body::<RotationDraft>(json!({"overlap": "48h"}))
        .answers::<Rotation>(
            200,
            "The new secret, shown here alone. `formerEndsAt` is left out where no former one signs.",
            json!({"secret": examples::SECRET, "createdAt": examples::TIME, "formerEndsAt": "2026-11-17T08:30:00.000Z"}),
        );
}
