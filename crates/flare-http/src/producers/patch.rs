//! `PATCH /consumers/:cid/producers/:id`, a JSON Merge Patch.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::producer::{ProducerDraft, ProducerView};
use http::{HeaderMap, StatusCode};
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};

/// Changes a producer.
pub async fn handle(
    State(app): AppState,
    Path((consumer, id)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let bytes = body::read(&app, &headers, body).await?;
    let patch: &RawValue = body::json(&bytes)?;
    let (consumer, id) = (ResourceId::new(consumer), SubscriptionId::new(id));
    let producer = app.patch_producer(&consumer, &id, patch).await?;
    Ok(body::answer(StatusCode::OK, &ProducerView::from(app.view(&producer).await?)))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("changeProducer", "Producers", "Change a producer")
        .text(
            "A JSON Merge Patch (RFC 7396) of what a user gave: `null` brings a default back. `start`, `secret` and the \
             fields that Flare adds cannot be in it; a target of another type is better given by PUT.",
        )
        .patch_body::<ProducerDraft>(&["start", "secret"], json!({"delivery": {"timeout": "5s", "retry": null}}))
        .answers::<ProducerView>(200, "The producer.", examples::producer())
        .refuses(409, super::TAKEN);
}
