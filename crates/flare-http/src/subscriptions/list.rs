//! `GET /resources/:rid/subscriptions`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::ResourceId;
use http::Uri;

use crate::AppState;
use crate::access::By;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::PageQuery;
use flare_model::subscription::View;

/// Lists the subscriptions of a resource in order of creation.
pub async fn handle(
    State(app): AppState,
    By(by): By,
    Path(resource): Path<String>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let resource = ResourceId::new(resource);
    let unknown = || ApiError::not_found(format!("there is no resource {resource}"));
    let resource = app.registry.resource(&resource).ok_or_else(unknown)?;
    let page = PageQuery::read(&app, &uri, &[])?;
    let subscriptions = app.registry.subscriptions_for(&by, &resource, page.offset, page.limit);
    let views = app.views(&subscriptions.entries).await?;
    Ok(page.answer(subscriptions.total as u64, "subscriptions", views))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("listSubscriptions", "Subscriptions", "List the subscriptions of a resource")
        .pages()
        .answers_list::<View>("subscriptions", "In order of creation.", examples::subscription());
}
