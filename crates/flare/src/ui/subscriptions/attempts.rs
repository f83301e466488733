//! `/ui/subscriptions/:id/attempts`: what was sent lately and what came of it, as it comes; and one of them, whole.

use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::observe::{AttemptView, Outcome, Wanted};
use flare_core::operations::App;
use flare_http::AppState;
use flare_http::error::ApiError;
use flare_model::ids::SubscriptionId;
use flare_model::time::Timestamp;

use super::exchange::Exchange;
use super::head::{Head, Tab, find, ids, place};
use super::plot::{Latency, class, short};
use crate::ui::documents;
use crate::ui::live::{self, Listeners, Topic};
use crate::ui::moment::{Ago, Moment};
use crate::ui::page::{Frame, PageError, Visit, html};
use crate::ui::pager::{Pager, encode};

/// Attempts that the plot looks at, and that the live list shows.
const PLOTTED: usize = 100;
const LIVE: usize = 30;

#[derive(Template)]
#[template(path = "subscriptions/attempts.html")]
struct ListPage {
    frame: Frame,
    head: Head,
    outcomes: Vec<(&'static str, bool)>,
    document: String,
    /// Whether the list moves by itself: where it is looked at from the top, and whole.
    moves: bool,
    filtered: bool,
    list: List,
    pager: Option<Pager>,
    live_from: String,
}

/// What moves.
#[derive(Template)]
#[template(path = "subscriptions/attempt-rows.html")]
struct List {
    latency: Option<Latency>,
    rows: Vec<AttemptRow>,
}

/// One attempt in a list.
pub struct AttemptRow {
    /// Its page.
    pub place: String,
    /// When it began.
    pub ago: Ago,
    /// How it ended.
    pub outcome: &'static str,
    /// The answer's status, or what went wrong.
    pub answer: String,
    /// What was told.
    pub action: &'static str,
    /// About which document.
    pub document: String,
    /// The page of the document.
    pub document_place: String,
    /// In which revision.
    pub revision: String,
    /// Which attempt for that revision.
    pub attempt: u32,
    /// How long it took.
    pub took: String,
    /// The replay that asked for it.
    pub replay: Option<String>,
}

impl AttemptRow {
    /// A row of a subscription's attempts; `place` is the subscription's page.
    pub fn of(place: &str, now: Timestamp, attempt: &AttemptView) -> AttemptRow {
        AttemptRow {
            place: format!("{place}/attempts/{}", attempt.id),
            ago: Ago { now, at: attempt.began_at },
            outcome: class(attempt.outcome),
            answer: match (attempt.status, &attempt.error) {
                (Some(status), Some(error)) => format!("{status}, but {error}"),
                (Some(status), None) => status.to_string(),
                (None, Some(error)) => error.clone(),
                (None, None) => "no answer".to_owned(),
            },
            action: attempt.action.as_str(),
            document_place: documents::place(&attempt.document),
            document: attempt.document.clone(),
            revision: attempt.revision.to_string(),
            attempt: attempt.attempt,
            took: short(attempt.timing.total.0),
            replay: attempt.replay.clone(),
        }
    }
}

/// Lists the last ones.
pub async fn list(State(app): AppState, Path(id): Path<String>, visit: Visit) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::Attempts).await?;
    let page = Pager::query(&app, visit.uri())?;
    let (resource, id) = head.ids();
    let outcome = visit.query("outcome");
    let document = visit.query("document");
    let known = |text: &String| Outcome::NAMES.into_iter().find(|(name, _)| name == text);
    let wanted = Wanted {
        outcome: match &outcome {
            Some(text) => Some(
                known(text).ok_or_else(|| ApiError::bad_request(format!("there is no outcome `{text}`")))?.1,
            ),
            None => None,
        },
        document: match &document {
            Some(url) => Some(app.document_url(url)?.to_string()),
            None => None,
        },
    };
    let found = app.attempts(&resource, &id, &wanted, page.offset, page.limit)?;
    let filtered = outcome.is_some() || document.is_some();
    let moves = !filtered && page.offset == 0;
    let list = match moves {
        true => List::newest(&app, &id)?,
        false => {
            let now = app.clock.now();
            let rows = found.attempts.iter().map(|attempt| AttemptRow::of(&head.place(), now, attempt));
            List { latency: None, rows: rows.collect() }
        }
    };
    let pager = Pager::new(visit.uri(), page, found.attempts.len(), found.total as usize);
    Ok(html(&ListPage {
        frame: head.frame(visit, "Attempts"),
        outcomes: Outcome::NAMES.map(|(name, _)| (name, Some(name) == outcome.as_deref())).to_vec(),
        document: document.unwrap_or_default(),
        moves,
        filtered,
        list,
        pager: Some(pager).filter(|pager| pager.is_needed()),
        live_from: format!("{}/attempts/live", head.place()),
        head,
    }))
}

/// The list, as it grows.
pub async fn live(
    State(app): AppState,
    Extension(live): Listeners,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    live::listen(&app, &live, Topic::Attempts(SubscriptionId::new(id)))
}

/// The streams of the list.
pub async fn stream(app: &App, id: &SubscriptionId) -> Option<String> {
    let list = List::newest(app, id).ok()?;
    Some(live::replace("attempts", &list.render().ok()?))
}

impl List {
    fn newest(app: &App, id: &SubscriptionId) -> flare_core::operations::Done<List> {
        let (resource, id) = ids(&*find(app, id.as_str())?);
        let attempts = app.attempts(&resource, &id, &Wanted::default(), 0, PLOTTED)?.attempts;
        let (place, now) = (place(&id), app.clock.now());
        let rows = attempts.iter().take(LIVE).map(|attempt| AttemptRow::of(&place, now, attempt));
        Ok(List { latency: Latency::of(&attempts), rows: rows.collect() })
    }
}

#[derive(Template)]
#[template(path = "subscriptions/attempt.html")]
struct OnePage {
    frame: Frame,
    head: Head,
    row: AttemptRow,
    began: Moment,
    webhook_id: String,
    explain: String,
    again: String,
    exchange: Exchange,
    sample: u32,
}

/// Shows one.
pub async fn show(
    State(app): AppState,
    Path((id, attempt)): Path<(String, String)>,
    visit: Visit,
) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::Attempts).await?;
    let (resource, id) = head.ids();
    let detail = app.attempt(&resource, &id, &attempt)?;
    let place = head.place();
    let view = detail.view;
    let row = AttemptRow::of(&place, app.clock.now(), &view);
    let document = encode(&view.document);
    let frame = head.frame(visit, format!("{} of {}", row.action, row.document));
    Ok(html(&OnePage {
        frame: frame.under("Attempts", format!("{place}/attempts")),
        began: Moment(view.began_at),
        explain: format!("/ui/explain?document={document}&subscription={}", encode(id.as_str())),
        again: format!("{place}/test?document={document}"),
        webhook_id: view.webhook_id,
        exchange: Exchange::of(detail.request, detail.response, view.error, &view.timing),
        sample: app.config.delivery.attempts.sample,
        row,
        head,
    }))
}
