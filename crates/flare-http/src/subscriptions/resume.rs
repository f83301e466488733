//! `POST /resources/:rid/subscriptions/:id/resume`.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

use super::{Ids, Shown, ids};
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use flare_model::subscription::View;

/// Lets a subscription go on; safe to repeat.
pub async fn handle(State(app): AppState, path: Ids) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let subscription = app.resume(&resource, &id).await?;
    Ok(body::answer(StatusCode::OK, &Shown::from(app.view(&subscription).await?)))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("resumeSubscription", "Subscriptions", "Let a subscription go on")
        .text("Also leaves `disabled`. Safe to repeat. Where everything has to be sent again, leases that are out end.")
        .answers::<View>(200, "The subscription.", examples::subscription())
        .refuses(409, "It has to be sent everything again and an attempt is still open: try again.");
}
