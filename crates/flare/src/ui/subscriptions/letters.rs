//! `GET /ui/dead-letters`: which subscriptions gave something up, those with the most first.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use flare_http::AppState;
use flare_http::access::By;

use super::head::place;
use crate::ui::page::{Frame, PageError, Section, Visit, html};
use crate::ui::pager::Pager;
use crate::ui::text;

#[derive(Template)]
#[template(path = "subscriptions/letters.html")]
struct Page {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
}

struct Row {
    place: String,
    name: String,
    resource: String,
    dead_letters: String,
}

/// Lists them.
pub async fn handle(State(app): AppState, By(by): By, visit: Visit) -> Result<Response, PageError> {
    let page = Pager::query(&app, visit.uri())?;
    let found = app.burdened(&by, page.offset, page.limit).await?;
    let pager = Pager::new(visit.uri(), page, found.entries.len(), found.total);
    let rows = found.entries.iter().map(|one| Row {
        place: format!("{}/dead-letters", place(one.subscription.id())),
        name: text::client(&one.subscription),
        resource: one.subscription.compiled.resource.view.endpoint.clone(),
        dead_letters: text::number(one.dead_letters),
    });
    let rows = rows.collect();
    Ok(html(&Page { frame: visit.frame(Section::DeadLetters, "Dead letters"), rows, pager }))
}
