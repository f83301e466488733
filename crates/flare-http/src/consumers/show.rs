//! `GET /consumers/:id`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::ResourceId;
use http::StatusCode;

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use flare_model::consumer::ConsumerView;

/// Shows a consumer.
pub async fn handle(State(app): AppState, Path(id): Path<String>) -> Result<Response, ApiError> {
    let consumer = app.consumer(&ResourceId::new(id))?;
    Ok(body::answer(StatusCode::OK, &app.consumer_view(&consumer).await?))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("getConsumer", "Consumers", "Show a consumer").answers::<ConsumerView>(
        200,
        "The consumer.",
        examples::consumer(),
    );
}
