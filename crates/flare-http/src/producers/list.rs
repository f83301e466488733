//! `GET /consumers/:cid/producers`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::ResourceId;
use flare_model::producer::ProducerView;
use http::Uri;

use crate::AppState;
use crate::access::By;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::PageQuery;

/// Lists the producers of a consumer in order of creation.
pub async fn handle(
    State(app): AppState,
    By(by): By,
    Path(consumer): Path<String>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let consumer = app.consumer_as_resource(&ResourceId::new(consumer))?;
    let page = PageQuery::read(&app, &uri, &[])?;
    let producers = app.registry.subscriptions_for(&by, &consumer, page.offset, page.limit);
    let views = app.views(&producers.entries).await?;
    let views: Vec<ProducerView> = views.into_iter().map(Into::into).collect();
    Ok(page.answer(producers.total as u64, "producers", views))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("listProducers", "Producers", "List the producers of a consumer")
        .pages()
        .answers_list::<ProducerView>("producers", "In order of creation.", examples::producer());
}
