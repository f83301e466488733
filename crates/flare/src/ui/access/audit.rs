//! `GET /ui/audit`: what was done, by whom, the last first.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use flare_core::operations::{ActView, AuditQuery};
use flare_http::AppState;
use flare_http::access::By;

use crate::ui::moment::Moment;
use crate::ui::page::{Frame, PageError, Section, Visit, html};
use crate::ui::pager::Pager;

#[derive(Template)]
#[template(path = "access/audit.html")]
struct Page {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
}

struct Row {
    at: Moment,
    account: String,
    token: String,
    address: String,
    operation: String,
    target: String,
    status: u16,
    refused: bool,
}

/// Shows what was done.
pub async fn list(State(app): AppState, By(by): By, visit: Visit) -> Result<Response, PageError> {
    let page = Pager::query(&app, visit.uri())?;
    let found = app.audit(&by, AuditQuery { since: None, offset: page.offset, limit: page.limit }).await?;
    let row = |act: ActView| Row {
        at: Moment(act.at),
        account: act.account,
        token: act.token.map(|token| token.name).unwrap_or_default(),
        address: act.address.unwrap_or_default(),
        operation: act.operation,
        target: act.target,
        refused: act.status >= 400,
        status: act.status,
    };
    let rows: Vec<Row> = found.entries.into_iter().map(row).collect();
    let pager = Pager::new(visit.uri(), page, rows.len(), found.total);
    Ok(html(&Page { frame: visit.frame(Section::Audit, "Audit"), rows, pager }))
}
