//! `POST /consumers`.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;

use crate::access::By;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};
use flare_model::consumer::{ConsumerDraft, ConsumerView};

/// Creates a consumer.
pub async fn handle(
    State(app): AppState,
    By(by): By,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let draft = body::json(&body::read(&app, &headers, body).await?)?;
    let consumer = app.create_consumer(&by.account, draft).await?;
    let view = app.consumer_view(&consumer).await?;
    Ok(body::created(&format!("/consumers/{}", consumer.id()), &view))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("createConsumer", "Consumers", "Create a consumer")
        .text(
            "A consumer reads messages from a source and feeds them as documents. Which fields a source has goes by its type; a \
             type that is not in this build is refused by name.",
        )
        .body::<ConsumerDraft>(examples::consumer_draft())
        .answers::<ConsumerView>(201, "The consumer.", examples::consumer())
        .with_location(201);
}
