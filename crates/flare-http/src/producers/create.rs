//! `POST /consumers/:cid/producers`.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::ResourceId;
use flare_model::producer::{ProducerDraft, ProducerView};
use flare_model::subscription::View;
use http::HeaderMap;

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::subscriptions::place;
use crate::{AppState, body};

/// Creates a producer.
pub async fn handle(
    State(app): AppState,
    Path(consumer): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let draft = body::json(&body::read(&app, &headers, body).await?)?;
    let consumer = ResourceId::new(consumer);
    let (producer, secret) = app.create_producer(&consumer, draft).await?;
    // The only time that the secret is shown.
    let view = View { secret: Some(secret), ..app.view(&producer).await? };
    Ok(body::created(&place(&consumer, producer.id()), &ProducerView::from(view)))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let mut created = examples::producer();
    created["secret"] = examples::SECRET.into();
    super::bounds(it);
    it.is("createProducer", "Producers", "Create a producer")
        .text("From this moment on no change of the consumer's documents is missed. `secret` is in this answer alone.")
        .body::<ProducerDraft>(super::draft("http://127.0.0.1:9000/orders/{id}"))
        .answers::<ProducerView>(201, "The producer, defaults filled in.", created)
        .with_location(201)
        .refuses(409, super::TAKEN);
}
