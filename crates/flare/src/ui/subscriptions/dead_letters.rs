//! `/ui/subscriptions/:id/dead-letters`: what was given up, by what went wrong; sent again or dropped, one, all of a kind,
//! or all.

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{DeadLetterKind, DeadLetterKinds, DeadLetterView, Failure, ReplayDraft};
use flare_http::AppState;
use flare_model::time::Timestamp;
use http::{HeaderMap, Uri};
use serde_json::json;

use super::head::{Head, Tab, find, ids, place};
use crate::ui::documents;
use crate::ui::flash;
use crate::ui::form::{Form, draft};
use crate::ui::moment::{Ago, Moment, Words};
use crate::ui::page::{Frame, PageError, Visit, html, message};
use crate::ui::pager::{Pager, encode, with};
use crate::ui::text;

#[derive(Template)]
#[template(path = "subscriptions/dead-letters.html")]
struct Page {
    frame: Frame,
    head: Head,
    total: u64,
    total_words: String,
    groups: Vec<Group>,
    /// What is not told apart, or was not looked at.
    beyond: Option<String>,
    /// The kind that is shown, if not all are.
    chosen: Option<String>,
    rows: Vec<Row>,
    pager: Pager,
    replay_to: String,
    discard_to: String,
}

/// All that failed alike.
struct Group {
    number: usize,
    reason: String,
    status: Option<u16>,
    error: Option<String>,
    count: String,
    words: String,
    href: String,
    here: bool,
}

struct Row {
    number: usize,
    document: String,
    document_place: String,
    explain: String,
    revision: String,
    action: &'static str,
    attempts: String,
    first: Words,
    last: Words,
    reason: String,
    response: Option<String>,
}

impl Row {
    fn of(number: usize, id: &str, now: Timestamp, letter: DeadLetterView) -> Row {
        let words = |at: Option<Timestamp>, say: &dyn Fn(Timestamp) -> Words| {
            at.map_or_else(|| Words::of("unknown"), say)
        };
        Row {
            number,
            document_place: documents::place(&letter.document),
            explain: format!("/ui/explain?document={}&subscription={}", encode(&letter.document), encode(id)),
            revision: letter.revision.to_string(),
            action: letter.action.map_or("", |action| action.as_str()),
            attempts: text::count(u64::from(letter.attempts), "attempt", "attempts"),
            first: words(letter.first_attempt_at, &|at| Words::default().moment(Moment(at))),
            last: words(letter.last_attempt_at, &|at| Words::default().moment(Ago { now, at })),
            reason: reason(letter.status, letter.error.as_deref()),
            response: letter
                .response
                .filter(|body| !body.is_empty())
                .map(|body| text::pretty(body.as_bytes())),
            document: letter.document,
        }
    }
}

/// What went wrong, in words.
fn reason(status: Option<u16>, error: Option<&str>) -> String {
    match (status, error) {
        (Some(status), Some(error)) => format!("answered {status}, but {error}"),
        (Some(status), None) => format!("answered {status}"),
        (None, Some(error)) => error.to_owned(),
        (None, None) => "no answer".to_owned(),
    }
}

/// The kind that the address of a page asks for.
fn wanted(visit: &Visit) -> Option<DeadLetterKind> {
    let status = visit.query("status").and_then(|status| status.parse().ok());
    let error = visit.query("error");
    let unknown = visit.query("kind").as_deref() == Some("unknown");
    (status.is_some() || error.is_some() || unknown).then_some(DeadLetterKind { status, error })
}

fn groups(uri: &Uri, found: DeadLetterKinds, wanted: Option<&DeadLetterKind>) -> Vec<Group> {
    let group = |(number, (kind, count)): (usize, (DeadLetterKind, u64))| {
        let status = kind.status.map(|status| status.to_string());
        let unknown = (kind.status.is_none() && kind.error.is_none()).then(|| "unknown".to_owned());
        let parts = [("status", status), ("error", kind.error.clone()), ("kind", unknown), ("offset", None)];
        Group {
            number,
            reason: reason(kind.status, kind.error.as_deref()),
            count: text::number(count),
            words: text::count(count, "document is", "documents are"),
            href: with(uri, &parts),
            here: wanted == Some(&kind),
            status: kind.status,
            error: kind.error,
        }
    };
    found.kinds.into_iter().enumerate().map(group).collect()
}

/// Lists them.
pub async fn list(State(app): AppState, Path(id): Path<String>, visit: Visit) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::DeadLetters).await?;
    let page = Pager::query(&app, visit.uri())?;
    let (resource, id) = head.ids();
    let wanted = wanted(&visit);
    let (offset, limit) = (page.offset as u64, page.limit as u64);
    let found = match &wanted {
        Some(kind) => app.dead_letters_of(&resource, &id, kind, offset, limit).await?,
        None => app.dead_letters(&resource, &id, offset, limit).await?,
    };
    let kinds = app.dead_letter_kinds(&resource, &id).await?;
    let pager = Pager::new(visit.uri(), page, found.letters.len(), found.total as usize);
    let now = app.clock.now();
    let rows =
        found.letters.into_iter().enumerate().map(|(at, letter)| Row::of(at, id.as_str(), now, letter));
    let (total, beyond) = (kinds.total, beyond(&kinds));
    Ok(html(&Page {
        total,
        total_words: text::count(total, "document is", "documents are"),
        groups: groups(visit.uri(), kinds, wanted.as_ref()),
        beyond,
        chosen: wanted.map(|kind| reason(kind.status, kind.error.as_deref())),
        rows: rows.collect(),
        pager,
        replay_to: format!("{}/dead-letters/replay", head.place()),
        discard_to: format!("{}/dead-letters/discard", head.place()),
        frame: head.frame(visit, "Dead letters"),
        head,
    }))
}

/// What the groups leave out, in words.
fn beyond(kinds: &DeadLetterKinds) -> Option<String> {
    let unseen = kinds.total.saturating_sub(kinds.looked_at);
    let parts = [(kinds.others, "of other kinds"), (unseen, "not looked at for this list")];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", text::number(*count)))
        .collect();
    (!parts.is_empty()).then(|| format!("And {}.", parts.join(", and ")))
}

/// Sends one again, all of a kind, or all.
pub async fn replay(
    State(app): AppState,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let form = Form::read(&[], &app, &headers, body).await?;
    let (resource, id) = ids(&*find(&app, &id)?);
    let number = |text: &str| text.parse::<u16>().ok();
    let wanted = match (form.given("document"), form.given("status").and_then(number), form.given("error")) {
        (Some(document), ..) => json!({"document": document}),
        (None, Some(status), _) => json!({"scope": "deadLetters", "status": status}),
        // As it was told: blanks around it are part of it.
        (None, None, Some(_)) => json!({"scope": "deadLetters", "error": form.value("error")}),
        (None, None, None) => json!({"scope": "deadLetters"}),
    };
    let wanted: ReplayDraft = draft(wanted)?;
    let place = place(&id);
    match app.replay(&resource, &id, wanted).await {
        Ok(replay) => {
            let documents = text::count(replay.total, "document is", "documents are");
            let words = format!("{documents} sent again, in the newest state ({}).", replay.id);
            Ok(flash::done(&format!("{place}/replays"), words))
        }
        Err(failure) => refused(&place, failure),
    }
}

/// Drops one, or all.
pub async fn discard(
    State(app): AppState,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let form = Form::read(&[], &app, &headers, body).await?;
    let (resource, id) = ids(&*find(&app, &id)?);
    let place = place(&id);
    match app.drop_dead_letters(&resource, &id, form.given("document")).await {
        Ok(dropped) => {
            let words = text::count(dropped as u64, "dead letter is", "dead letters are");
            Ok(flash::done(&format!("{place}/dead-letters"), format!("{words} dropped.")))
        }
        Err(failure) => refused(&place, failure),
    }
}

/// What someone else has done meanwhile is said where one was.
fn refused(place: &str, failure: Failure) -> Result<Response, PageError> {
    match failure {
        Failure::Conflict(_) | Failure::NotFound(_) | Failure::Invalid(_) => {
            Ok(flash::refused(&format!("{place}/dead-letters"), message(failure)))
        }
        other => Err(other.into()),
    }
}
