//! `POST /consumers/:id/pause` and `/resume`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::ResourceId;
use http::StatusCode;

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use flare_model::consumer::ConsumerView;

/// Stops a consumer; safe to repeat.
pub async fn pause(State(app): AppState, Path(id): Path<String>) -> Result<Response, ApiError> {
    let consumer = app.pause_consumer(&ResourceId::new(id)).await?;
    Ok(body::answer(StatusCode::OK, &app.consumer_view(&consumer).await?))
}

/// Lets a consumer go on; safe to repeat.
pub async fn resume(State(app): AppState, Path(id): Path<String>) -> Result<Response, ApiError> {
    let consumer = app.resume_consumer(&ResourceId::new(id)).await?;
    Ok(body::answer(StatusCode::OK, &app.consumer_view(&consumer).await?))
}

/// What the description says of stopping one.
pub fn describe_pause(it: &mut Notes<'_>) {
    it.is("pauseConsumer", "Consumers", "Stop a consumer")
        .text("Nothing more is asked of its source, and nothing that was read is lost. Safe to repeat.")
        .answers::<ConsumerView>(200, "The consumer.", examples::consumer());
}

/// What the description says of letting it go on.
pub fn describe_resume(it: &mut Notes<'_>) {
    it.is("resumeConsumer", "Consumers", "Let a consumer go on")
        .text("Where it was. Safe to repeat.")
        .answers::<ConsumerView>(200, "The consumer.", examples::consumer());
}
