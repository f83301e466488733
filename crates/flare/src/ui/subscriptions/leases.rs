//! `/ui/subscriptions/:id/leases`: what clients that pull have and have not settled; ended one by one, or all.

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::LeaseView;
use flare_http::AppState;
use flare_model::time::Timestamp;
use http::HeaderMap;

use super::head::{Head, Tab, find, ids, place};
use crate::ui::documents;
use crate::ui::flash;
use crate::ui::form::Form;
use crate::ui::moment::Ago;
use crate::ui::page::{Frame, PageError, Visit, html};
use crate::ui::pager::Pager;
use crate::ui::text;

#[derive(Template)]
#[template(path = "leases.html")]
struct Page {
    frame: Frame,
    head: Head,
    total: u64,
    total_words: String,
    rows: Vec<Row>,
    pager: Pager,
    end_to: String,
}

struct Row {
    document: String,
    place: String,
    action: &'static str,
    revision: String,
    attempt: u32,
    ends: Ago,
}

impl Row {
    fn of(now: Timestamp, lease: LeaseView) -> Row {
        Row {
            place: documents::place(&lease.document),
            action: lease.action.as_str(),
            revision: lease.revision.to_string(),
            attempt: lease.attempt,
            ends: Ago { now, at: lease.expires_at },
            document: lease.document,
        }
    }
}

/// Lists them.
pub async fn list(State(app): AppState, Path(id): Path<String>, visit: Visit) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::Leases).await?;
    let page = Pager::query(&app, visit.uri())?;
    let (resource, id) = head.ids();
    let found = app.leases(&resource, &id, page.offset, page.limit).await?;
    let pager = Pager::new(visit.uri(), page, found.leases.len(), found.total as usize);
    let now = app.clock.now();
    Ok(html(&Page {
        total: found.total,
        total_words: text::count(found.total, "document is", "documents are"),
        rows: found.leases.into_iter().map(|lease| Row::of(now, lease)).collect(),
        pager,
        end_to: format!("{}/leases", head.place()),
        frame: head.frame(visit, "Leases"),
        head,
    }))
}

/// Ends one, or all.
pub async fn end(
    State(app): AppState,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let form = Form::read(&[], &app, &headers, body).await?;
    let (resource, id) = ids(&*find(&app, &id)?);
    let ended = app.end_leases(&resource, &id, form.given("document")).await?.ended as u64;
    let words = text::count(ended, "lease is ended", "leases are ended");
    Ok(flash::done(&format!("{}/leases", place(&id)), format!("{words}.")))
}
