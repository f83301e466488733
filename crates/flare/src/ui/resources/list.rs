//! `GET /ui/resources`: all resources, a page at a time.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use flare_http::AppState;
use flare_http::access::By;
use flare_model::resource::Resource;

use crate::ui::moment::Ago;
use crate::ui::page::{Frame, PageError, Section, Visit, html};
use crate::ui::pager::Pager;
use crate::ui::text;

#[derive(Template)]
#[template(path = "resources/list.html")]
struct Page {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
}

struct Row {
    resource: Arc<Resource>,
    subscriptions: u64,
    created: Ago,
}

/// Shows the list.
pub async fn handle(State(app): AppState, By(by): By, visit: Visit) -> Result<Response, PageError> {
    let page = Pager::query(&app, visit.uri())?;
    let found = app.registry.resources_for(&by, page.offset, page.limit);
    let now = app.clock.now();
    let row = |resource: Arc<Resource>| Row {
        subscriptions: app.registry.subscriptions_for(&by, &resource, 0, 0).total as u64,
        created: Ago { now, at: resource.view.created_at },
        resource,
    };
    let rows: Vec<Row> = found.entries.into_iter().map(row).collect();
    let pager = Pager::new(visit.uri(), page, rows.len(), found.total);
    Ok(html(&Page { frame: visit.frame(Section::Resources, "Resources"), rows, pager }))
}
