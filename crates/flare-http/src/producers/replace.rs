//! `PUT /consumers/:cid/producers/:id`.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::producer::{ProducerDraft, ProducerView};
use http::{HeaderMap, StatusCode};

use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::{AppState, body};

/// Replaces a producer.
pub async fn handle(
    State(app): AppState,
    Path((consumer, id)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let draft: ProducerDraft = body::json(&body::read(&app, &headers, body).await?)?;
    let (consumer, id) = (ResourceId::new(consumer), SubscriptionId::new(id));
    let producer = app.replace_producer(&consumer, &id, draft).await?;
    Ok(body::answer(StatusCode::OK, &ProducerView::from(app.view(&producer).await?)))
}

/// A whole draft, but for what cannot be replaced.
fn replacement() -> serde_json::Value {
    let mut draft = super::draft("http://127.0.0.1:9000/shipped/{id}");
    draft.as_object_mut().map(|draft| draft.remove("start"));
    draft
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    super::bounds(it);
    it.is("replaceProducer", "Producers", "Replace a producer")
        .text(
            "What is left out becomes its default again, but for `start`, which stays. What the target has stays known. \
             A changed `filter` decides every document again.",
        )
        .body::<ProducerDraft>(replacement())
        .answers::<ProducerView>(200, "The producer.", examples::producer())
        .refuses(409, super::TAKEN);
}
