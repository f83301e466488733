//! `GET /resources`.

use axum::extract::State;
use axum::response::Response;
use http::Uri;

use crate::AppState;
use crate::access::By;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::PageQuery;
use flare_model::resource::ResourceView;

/// Lists resources in order of creation.
pub async fn handle(State(app): AppState, By(by): By, uri: Uri) -> Result<Response, ApiError> {
    let page = PageQuery::read(&app, &uri, &[])?;
    let resources = app.registry.resources_for(&by, page.offset, page.limit);
    let views = resources.entries.iter().map(|resource| &resource.view).collect();
    Ok(page.answer(resources.total as u64, "resources", views))
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    it.is("listResources", "Resources", "List resources").pages().answers_list::<ResourceView>(
        "resources",
        "In order of creation.",
        examples::resource(),
    );
}
