//! `GET /consumers`.

use axum::extract::State;
use axum::response::Response;
use http::Uri;

use crate::AppState;
use crate::access::By;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::PageQuery;
use flare_model::consumer::ConsumerView;

/// Lists consumers in order of creation.
pub async fn handle(State(app): AppState, By(by): By, uri: Uri) -> Result<Response, ApiError> {
    let page = PageQuery::read(&app, &uri, &[])?;
    let found = app.registry.consumers_for(&by, page.offset, page.limit);
    let mut views: Vec<ConsumerView> = Vec::with_capacity(found.entries.len());
    for consumer in &found.entries {
        views.push(app.consumer_view(consumer).await?);
    }
    Ok(page.answer(found.total as u64, "consumers", views))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("listConsumers", "Consumers", "List consumers").pages().answers_list::<ConsumerView>(
        "consumers",
        "In order of creation.",
        examples::consumer(),
    );
}
