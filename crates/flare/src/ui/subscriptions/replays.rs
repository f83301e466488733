//! `/ui/subscriptions/:id/replays`: what to send again comes in, and how far that is goes out, as it goes.

use askama::Template;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{App, Done, ReplayDraft, ReplayView};
use flare_http::AppState;
use flare_http::error::ApiError;
use flare_model::ids::SubscriptionId;
use http::HeaderMap;
use serde_json::json;

use super::head::{Head, Tab, find, ids};
use crate::ui::flash;
use crate::ui::form::{Form, draft};
use crate::ui::live::{self, Listeners, Topic};
use crate::ui::moment::Ago;
use crate::ui::page::{Frame, PageError, Visit, html_with};
use crate::ui::text;

const FIELDS: &[&str] = &["since", "document"];
/// All that are remembered.
const SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "subscriptions/replays.html")]
struct Page {
    frame: Frame,
    head: Head,
    form: Form,
    documents: String,
    lagging: String,
    dead_letters: String,
    rows: Rows,
    live_from: String,
}

/// What moves.
#[derive(Template)]
#[template(path = "subscriptions/replay-rows.html")]
struct Rows {
    rows: Vec<Row>,
}

struct Row {
    id: String,
    asked: Ago,
    total: u64,
    done: u64,
    words: String,
    running: bool,
}

/// Shows what can be sent again, and what was.
pub async fn page(State(app): AppState, Path(id): Path<String>, visit: Visit) -> Result<Response, PageError> {
    let mut form = Form::new(FIELDS, &[("what", "all")]);
    for name in ["what", "document"] {
        if let Some(value) = visit.query(name) {
            form.set(name, value);
        }
    }
    show(&app, &id, visit, form).await
}

/// Begins a replay.
pub async fn submit(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let mut form = Form::read(FIELDS, &app, &headers, body).await?;
    let (resource, subscription) = ids(&*find(&app, &id)?);
    let wanted = match form.value("what") {
        "since" => json!({"scope": "all", "since": moment(form.value("since"), form.value("since.offset"))}),
        "document" => json!({"document": form.value("document").trim()}),
        scope => json!({"scope": scope}),
    };
    let draft = draft::<ReplayDraft>(wanted);
    match form.submit(draft, |draft| app.replay(&resource, &subscription, draft)).await? {
        Some(replay) => {
            let words = format!("The replay {} has begun: {}.", replay.id, documents(replay.total));
            Ok(flash::done(&format!("/ui/subscriptions/{id}/replays"), words))
        }
        None => show(&app, &id, visit, form).await,
    }
}

/// Progress, as it is made.
pub async fn live(
    State(app): AppState,
    Extension(live): Listeners,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    live::listen(&app, &live, Topic::Replays(SubscriptionId::new(id)))
}

/// The streams of the page.
pub async fn stream(app: &App, id: &SubscriptionId) -> Option<String> {
    let rows = Rows::of(app, id.as_str()).await.ok()?;
    Some(live::replace("replays", &rows.render().ok()?))
}

async fn show(app: &App, id: &str, visit: Visit, form: Form) -> Result<Response, PageError> {
    let head = Head::of(app, id, Tab::Replays).await?;
    let number = head.subscription.compiled.resource.number;
    let lanes = app.store.documents.lanes().await?;
    let all = lanes.iter().filter(|lane| lane.lane.resource == number).map(|lane| lane.documents).sum();
    let feed = &head.status.feed;
    let page = Page {
        frame: head.frame(visit, "Replay"),
        documents: documents(all),
        lagging: text::count_lagging(feed, "document", "documents"),
        dead_letters: documents(feed.dead_letters),
        rows: Rows::of(app, id).await?,
        live_from: format!("{}/replays/live", head.place()),
        form,
        head,
    };
    Ok(html_with(page.form.status(), &page))
}

impl Rows {
    async fn of(app: &App, id: &str) -> Done<Rows> {
        let (resource, id) = ids(&*find(app, id)?);
        let now = app.clock.now();
        let replays = app.replays(&resource, &id, 0, SHOWN).await?.replays;
        let row = |replay: ReplayView| Row {
            asked: Ago { now, at: replay.created_at },
            words: format!("{} of {}", text::number(replay.done), documents(replay.total)),
            // A bar of nothing is full.
            total: replay.total.max(1),
            done: if replay.total == 0 { 1 } else { replay.done },
            running: replay.state == "running",
            id: replay.id,
        };
        Ok(Rows { rows: replays.into_iter().rev().map(row).collect() })
    }
}

fn documents(count: u64) -> String {
    text::count(count, "document", "documents")
}

/// A moment as browsers give it, and how many minutes the reader's clock is ahead of UTC, as RFC 3339; anything else as
/// it is, for the API to judge.
fn moment(given: &str, ahead: &str) -> String {
    let given = given.trim();
    let zone = match ahead.parse::<i16>() {
        Ok(ahead) if ahead != 0 => {
            let (sign, ahead) = (if ahead < 0 { '-' } else { '+' }, ahead.unsigned_abs());
            format!("{sign}{:02}:{:02}", ahead / 60, ahead % 60)
        }
        _ => "Z".to_owned(),
    };
    match given.len() {
        16 if given.is_ascii() => format!("{given}:00{zone}"),
        19 if given.is_ascii() => format!("{given}{zone}"),
        _ => given.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::moment;

    #[test]
    fn moments_of_browsers_are_of_the_readers_zone() {
        assert_eq!(moment("2026-01-02T03:04", ""), "2026-01-02T03:04:00Z");
        assert_eq!(moment("2026-01-02T03:04:05", "0"), "2026-01-02T03:04:05Z");
        assert_eq!(moment("2026-01-02T03:04", "120"), "2026-01-02T03:04:00+02:00");
        assert_eq!(moment("2026-01-02T03:04", "-570"), "2026-01-02T03:04:00-09:30");
        assert_eq!(moment("yesterday", "120"), "yesterday");
    }
}
