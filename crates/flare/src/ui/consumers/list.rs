//! `GET /ui/consumers`: all consumers, a page at a time.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use flare_http::AppState;
use flare_http::access::By;
use flare_model::consumer::ConsumerView;

use crate::ui::moment::Ago;
use crate::ui::page::{Frame, PageError, Section, Visit, html};
use crate::ui::pager::Pager;

#[derive(Template)]
#[template(path = "consumers/list.html")]
struct Page {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
}

struct Row {
    view: ConsumerView,
    label: String,
    created: Ago,
}

/// Shows the list.
pub async fn handle(State(app): AppState, By(by): By, visit: Visit) -> Result<Response, PageError> {
    let page = Pager::query(&app, visit.uri())?;
    let found = app.registry.consumers_for(&by, page.offset, page.limit);
    let now = app.clock.now();
    let mut rows = Vec::with_capacity(found.entries.len());
    for consumer in &found.entries {
        rows.push(Row {
            view: app.consumer_view(consumer).await?,
            label: consumer.resource.view.endpoint.clone(),
            created: Ago { now, at: consumer.stored.created_at },
        });
    }
    let pager = Pager::new(visit.uri(), page, rows.len(), found.total);
    Ok(html(&Page { frame: visit.frame(Section::Consumers, "Consumers"), rows, pager }))
}
