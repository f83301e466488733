//! `PUT /consumers/:id`.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::ResourceId;
use http::{HeaderMap, StatusCode};

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use flare_model::consumer::{ConsumerDraft, ConsumerView};

/// Replaces a consumer.
pub async fn handle(
    State(app): AppState,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let draft = body::json::<ConsumerDraft>(&body::read(&app, &headers, body).await?)?;
    let consumer = app.replace_consumer(&ResourceId::new(id), draft).await?;
    Ok(body::answer(StatusCode::OK, &app.consumer_view(&consumer).await?))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("replaceConsumer", "Consumers", "Replace a consumer")
        .text(
            "All but `source.type` and `payload.format`, which stay. It goes on where it was. `[redacted]` in place of a \
             credential keeps what is stored.",
        )
        .body::<ConsumerDraft>(examples::consumer_draft())
        .answers::<ConsumerView>(200, "The consumer.", examples::consumer())
        .refuses(409, "Somebody else has changed it meanwhile; try again.");
}
