//! `GET /ui/documents/show?url=`: a document, its content, and who has it.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use flare_core::operations::{HolderView, HoldersQuery};
use flare_http::AppState;
use flare_http::access::By;
use flare_http::error::ApiError;
use flare_model::feed::ClientHas;

use crate::ui::moment::{Moment, Words};
use crate::ui::page::{Frame, PageError, Section, Visit, html};
use crate::ui::pager::{Pager, encode, with};
use crate::ui::text;

/// How much of a document is shown unless all of it is asked for.
const SHOWN: usize = 64 * 1024;

#[derive(Template)]
#[template(path = "documents/show.html")]
struct Page {
    frame: Frame,
    url: String,
    encoded: String,
    resource: String,
    endpoint: String,
    revision: String,
    updated: Moment,
    deleted: bool,
    bytes: u64,
    content: String,
    /// The page that shows all of it, where this one does not.
    whole_href: Option<String>,
    lagging: bool,
    all_href: String,
    lagging_href: String,
    subscriptions: u64,
    rows: Vec<Row>,
    pager: Pager,
}

struct Row {
    client: String,
    href: String,
    explain: String,
    has: &'static str,
    tone: &'static str,
    why: Words,
}

/// Shows the document.
pub async fn handle(State(app): AppState, By(by): By, visit: Visit) -> Result<Response, PageError> {
    let url = visit.query("url").ok_or_else(|| ApiError::bad_request("query parameter `url` is missing"))?;
    let url = app.document_url(&url)?;
    let (resource, document) = app.document(&by, &url).await?;
    let page = Pager::query(&app, visit.uri())?;
    let lagging = visit.query("lagging").as_deref() == Some("true");
    let query = HoldersQuery { lagging, offset: page.offset, limit: page.limit };
    let holders = app.holders(&resource, &document, query).await?;
    let encoded = encode(url.as_str());
    let row = |holder: HolderView| {
        let (has, tone) = spoken(holder.client_has, document.row.deleted);
        let id = holder.subscription.id();
        Row {
            client: text::client(&holder.subscription),
            href: format!("/ui/resources/{}/subscriptions/{id}", resource.id()),
            explain: format!("/ui/explain?document={encoded}&subscription={id}"),
            has,
            tone,
            why: Words::of(&holder.why),
        }
    };
    let rows: Vec<Row> = holders.entries.into_iter().map(row).collect();
    let offset = |offset: usize| with(visit.uri(), &[("offset", Some(offset.to_string()))]);
    let pager = Pager {
        from: 0,
        to: rows.len() as u64,
        total: None,
        previous: (page.offset > 0).then(|| offset(page.offset.saturating_sub(page.limit))),
        next: holders.next.map(offset),
    };
    let content = text::pretty(&document.content);
    let whole = visit.query("content").as_deref() == Some("whole");
    let cut = content.char_indices().map(|(at, _)| at).find(|at| *at >= SHOWN).filter(|_| !whole);
    Ok(html(&Page {
        resource: resource.id().to_string(),
        endpoint: resource.view.endpoint.clone(),
        revision: document.revision.to_string(),
        updated: Moment(document.updated_at),
        deleted: document.row.deleted,
        bytes: document.content.len() as u64,
        whole_href: cut.map(|_| with(visit.uri(), &[("content", Some("whole".into()))])),
        content: content[..cut.unwrap_or(content.len())].to_owned(),
        lagging,
        all_href: with(visit.uri(), &[("lagging", None), ("offset", None)]),
        lagging_href: with(visit.uri(), &[("lagging", Some("true".into())), ("offset", None)]),
        subscriptions: holders.total as u64,
        rows,
        pager,
        encoded,
        frame: visit.frame(Section::Documents, url.as_str()).under("Documents", "/ui/documents"),
        url: url.to_string(),
    }))
}

/// What a client has, in words and in colour.
fn spoken(has: ClientHas, deleted: bool) -> (&'static str, &'static str) {
    match (has, deleted) {
        (ClientHas::Newest, false) => ("this revision", "good"),
        (ClientHas::Newest, true) => ("nothing, as it should", "good"),
        (ClientHas::Older, _) => ("an older revision", "warn"),
        (ClientHas::Nothing, _) => ("nothing", "muted"),
        (ClientHas::Unknown, _) => ("not known", "warn"),
    }
}
