//! `GET /ui/resources/:id`: one resource, who follows it, and how to change one of its documents.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_http::AppState;
use flare_http::access::By;
use flare_http::error::ApiError;
use flare_model::ids::ResourceId;
use flare_model::resource::Resource;

use crate::ui::moment::Moment;
use crate::ui::page::{Frame, PageError, Section, Visit, html};
use crate::ui::text;

#[derive(Template)]
#[template(path = "resources/show.html")]
struct Page {
    frame: Frame,
    resource: Arc<Resource>,
    created: Moment,
    documents: u64,
    tombstones: u64,
    subscriptions: u64,
    delete_to: String,
}

/// Shows the resource.
pub async fn handle(
    State(app): AppState,
    By(by): By,
    Path(id): Path<String>,
    visit: Visit,
) -> Result<Response, PageError> {
    let resource = app.registry.resource(&ResourceId::new(id.as_str()));
    let resource = resource.ok_or_else(|| ApiError::not_found(format!("there is no resource {id}")))?;
    let lanes = app.store.documents.lanes().await?;
    // Whoever only follows some of it is not told how much there is.
    let whole = by.sees_whole(&resource);
    let mine = || lanes.iter().filter(|lane| whole && lane.lane.resource == resource.number);
    let page = Page {
        frame: visit.frame(Section::Resources, &resource.view.endpoint).under("Resources", "/ui/resources"),
        created: Moment(resource.view.created_at),
        documents: mine().map(|lane| lane.documents).sum(),
        tombstones: mine().map(|lane| lane.tombstones).sum(),
        subscriptions: app.registry.subscriptions_for(&by, &resource, 0, 0).total as u64,
        delete_to: format!("/ui/resources/{}/delete", resource.id()),
        resource,
    };
    Ok(html(&page))
}
