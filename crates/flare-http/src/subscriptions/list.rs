//! `GET /resources/:rid/subscriptions`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_model::ids::ResourceId;
use http::Uri;

use crate::AppState;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::PageQuery;
use flare_model::subscription::View;

/// Lists the subscriptions of a resource in order of creation.
pub async fn handle(
    State(app): AppState,
    Path(resource): Path<String>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let resource = ResourceId::new(resource);
    if app.registry.resource(&resource).is_none() {
        return Err(ApiError::not_found(format!("there is no resource {resource}")));
    }
    let page = PageQuery::read(&app, &uri, &[])?;
    let subscriptions = app.registry.subscriptions(&resource, page.offset, page.limit);
    let views = app.views(&subscriptions.entries).await?;
    Ok(page.answer(subscriptions.total as u64, "subscriptions", views))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("listSubscriptions", "Subscriptions", "List the subscriptions of a resource")
        .pages()
        .answers_list::<View>("subscriptions", "In order of creation.", examples::subscription());
}
