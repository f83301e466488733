//! `/ui/subscriptions/:id/dead-letters`: what was given up, with the reason; sent again or dropped, one or all.

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{DeadLetterView, Failure, ReplayDraft};
use flare_http::AppState;
use flare_model::time::Timestamp;
use http::HeaderMap;
use serde_json::json;

use super::head::{Head, Tab, find, ids, place};
use crate::ui::flash;
use crate::ui::form::{Form, draft};
use crate::ui::page::{Frame, PageError, Visit, html, message};
use crate::ui::pager::{Pager, encode};
use crate::ui::text;

#[derive(Template)]
#[template(path = "subscriptions/dead-letters.html")]
struct Page {
    frame: Frame,
    head: Head,
    total: u64,
    total_words: String,
    rows: Vec<Row>,
    pager: Pager,
    replay_to: String,
    discard_to: String,
}

struct Row {
    number: usize,
    document: String,
    explain: String,
    revision: String,
    action: &'static str,
    attempts: String,
    first: String,
    last: String,
    reason: String,
    response: Option<String>,
}

impl Row {
    fn of(number: usize, id: &str, now: Timestamp, letter: DeadLetterView) -> Row {
        let at = |at: Option<Timestamp>| at.map_or("unknown".to_owned(), text::moment);
        Row {
            number,
            explain: format!("/ui/explain?document={}&subscription={}", encode(&letter.document), encode(id)),
            revision: letter.revision.to_string(),
            action: letter.action.map_or("", |action| action.as_str()),
            attempts: text::count(u64::from(letter.attempts), "attempt", "attempts"),
            first: at(letter.first_attempt_at),
            last: letter.last_attempt_at.map_or("unknown".to_owned(), |at| text::ago(now, at)),
            reason: match (letter.status, letter.error) {
                (Some(status), _) => format!("answered {status}"),
                (None, Some(error)) => error,
                (None, None) => "no answer".to_owned(),
            },
            response: letter
                .response
                .filter(|body| !body.is_empty())
                .map(|body| text::pretty(body.as_bytes())),
            document: letter.document,
        }
    }
}

/// Lists them.
pub async fn list(State(app): AppState, Path(id): Path<String>, visit: Visit) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::DeadLetters).await?;
    let page = Pager::query(&app, visit.uri())?;
    let (resource, id) = head.ids();
    let found = app.dead_letters(&resource, &id, page.offset as u64, page.limit as u64).await?;
    let pager = Pager::new(visit.uri(), page, found.letters.len(), found.total as usize);
    let now = app.clock.now();
    let rows =
        found.letters.into_iter().enumerate().map(|(at, letter)| Row::of(at, id.as_str(), now, letter));
    Ok(html(&Page {
        frame: head.frame(visit, "Dead letters"),
        total: found.total,
        total_words: text::count(found.total, "document is", "documents are"),
        rows: rows.collect(),
        pager,
        replay_to: format!("{}/dead-letters/replay", head.place()),
        discard_to: format!("{}/dead-letters/discard", head.place()),
        head,
    }))
}

/// Sends one again, or all.
pub async fn replay(
    State(app): AppState,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let form = Form::read(&[], &app, &headers, body).await?;
    let (resource, id) = ids(&*find(&app, &id)?);
    let wanted = match form.given("document") {
        Some(document) => json!({"document": document}),
        None => json!({"scope": "deadLetters"}),
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
