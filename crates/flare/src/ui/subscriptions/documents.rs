//! `GET /ui/subscriptions/:id/documents`: what the client has and lacks, document by document, a page at a time.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{DriftPlace, DriftQuery, DriftView};
use flare_http::AppState;
use flare_http::error::ApiError;
use flare_model::feed::ClientHas;

use super::head::{Head, Tab};
use crate::ui::documents;
use crate::ui::moment::Words;
use crate::ui::page::{Frame, PageError, Visit, html};
use crate::ui::pager::{Pager, encode, with};
use crate::ui::text;

#[derive(Template)]
#[template(path = "subscriptions/documents.html")]
struct Page {
    frame: Frame,
    head: Head,
    lagging: bool,
    all_href: String,
    lagging_href: String,
    total: String,
    rows: Vec<Row>,
    next: Option<String>,
    first: Option<String>,
}

/// One document, as the client has it.
pub struct Row {
    /// Its url.
    pub document: String,
    /// Its page.
    pub place: String,
    /// Why it is as it is.
    pub explain: String,
    /// Its newest revision.
    pub revision: String,
    /// What the client has of it.
    pub has: &'static str,
    /// The same as a colour.
    pub tone: &'static str,
    /// Why, in words.
    pub why: Words,
}

impl Row {
    /// A row about a document and the client of this subscription.
    pub fn of(id: &str, drift: DriftView) -> Row {
        let (has, tone) = match drift.client_has {
            ClientHas::Newest => ("the newest", "good"),
            ClientHas::Older => ("an older one", "warn"),
            ClientHas::Nothing => ("nothing", "muted"),
            ClientHas::Unknown => ("unknown", "warn"),
        };
        Row {
            explain: format!("/ui/explain?document={}&subscription={}", encode(&drift.document), encode(id)),
            place: documents::place(&drift.document),
            document: drift.document,
            revision: match drift.deleted {
                true => format!("{}, deleted", drift.revision),
                false => drift.revision.to_string(),
            },
            has,
            tone,
            why: Words::of(&drift.why),
        }
    }
}

/// Shows a page of them.
pub async fn handle(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::Documents).await?;
    let page = Pager::query(&app, visit.uri())?;
    let (resource, id) = head.ids();
    let lagging = visit.query("lagging").as_deref() == Some("true");
    let after = match visit.query("after").map(|after| after.parse::<DriftPlace>()) {
        Some(Err(())) => return Err(ApiError::bad_request("`after` is not what a page ended with").into()),
        after => after.and_then(Result::ok),
    };
    let query = DriftQuery { lagging, limit: page.limit, offset: 0, after };
    let found = app.drift(&resource, &id, query).await?;
    Ok(html(&Page {
        lagging,
        all_href: with(visit.uri(), &[("lagging", None), ("after", None)]),
        lagging_href: with(visit.uri(), &[("lagging", Some("true".into())), ("after", None)]),
        total: text::count(found.total, "document", "documents"),
        rows: found.documents.into_iter().map(|drift| Row::of(id.as_str(), drift)).collect(),
        next: found.next.map(|next| with(visit.uri(), &[("after", Some(next.to_string()))])),
        first: after.map(|_| with(visit.uri(), &[("after", None)])),
        frame: head.frame(visit, "Documents"),
        head,
    }))
}
