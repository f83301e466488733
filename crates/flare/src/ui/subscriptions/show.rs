//! `GET /ui/subscriptions/:id`: how a subscription stands, as it stands.

use askama::Template;
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{Redirect, Response};
use flare_core::observe::Wanted;
use flare_core::operations::{App, Done, DriftQuery, SweepView};
use flare_http::AppState;
use flare_model::ids::SubscriptionId;
use flare_model::producer::ProducerDraft;
use flare_model::subscription::credentials::redacted;
use flare_model::subscription::{Status, completed};
use http::HeaderMap;
use http::header::HOST;

use super::attempts::AttemptRow;
use super::documents::Row;
use super::head::{Head, Tab, place};
use super::plot::Latency;
use crate::ui::live::{self, Listeners, Topic};
use crate::ui::moment::{Ago, Moment, Words};
use crate::ui::page::{Frame, PageError, Visit, html};
use crate::ui::pager::encode;
use crate::ui::text;

/// Documents shown that the client lacks; the rest is on a page of its own.
const LACKING: usize = 10;
/// Attempts that the plot looks at.
const PLOTTED: usize = 100;
/// Attempts that are shown below it.
const RECENT: usize = 5;

#[derive(Template)]
#[template(path = "subscriptions/show.html")]
struct Page {
    frame: Frame,
    head: Head,
    now: Now,
    settings: String,
    created: Moment,
    updated: Moment,
    stopping: bool,
    starts_over: bool,
    lagging_words: String,
    held_words: String,
    dead_words: String,
    api: String,
    pause_to: String,
    resume_to: String,
    delete_to: String,
    live_from: String,
    reserve: String,
    settle: String,
}

/// What moves.
#[derive(Template)]
#[template(path = "subscriptions/now.html")]
struct Now {
    place: String,
    state: &'static str,
    since: Ago,
    reason: Option<Words>,
    counts: Vec<Count>,
    facts: Vec<(&'static str, Words)>,
    latency: Option<Latency>,
    recent: Vec<AttemptRow>,
    lacking: Vec<Row>,
    lacking_more: bool,
    passive: bool,
}

struct Count {
    label: &'static str,
    value: String,
    tone: &'static str,
    hint: &'static str,
}

/// Shows it.
pub async fn handle(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    let head = Head::of(&app, &id, Tab::Overview).await?;
    let now = Now::of(&app, &head).await?;
    let stored = &head.subscription.stored;
    let feed = &head.status.feed;
    let (resource, id) = head.ids();
    let api = match head.is_producer() {
        true => format!("/consumers/{resource}/producers/{id}"),
        false => format!("/resources/{resource}/subscriptions/{id}"),
    };
    let place = head.place();
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("127.0.0.1:8080");
    let origin = format!("http://{host}");
    Ok(html(&Page {
        frame: head.frame(visit, head.name()),
        settings: settings(&head),
        created: Moment(stored.created_at),
        updated: Moment(stored.updated_at),
        stopping: !matches!(head.status.status, Status::Paused | Status::Disabled),
        starts_over: stored.disabled.as_ref().is_some_and(|disabled| disabled.start_over),
        lagging_words: text::count_lagging(feed, "document is", "documents are"),
        held_words: text::count(feed.held, "document", "documents"),
        dead_words: text::count(feed.dead_letters, "dead letter", "dead letters"),
        pause_to: format!("{place}/pause"),
        resume_to: format!("{place}/resume"),
        delete_to: format!("{place}/delete"),
        live_from: format!("{place}/live"),
        reserve: format!("curl -X POST '{origin}{api}/reserve?quantity=10&wait=20s&lease=30s'"),
        settle: format!(
            "curl -X POST '{origin}{api}/settle' -d '{{\"messages\":[{{\"lease\":\"…\",\"status\":\"success\"}}]}}'"
        ),
        api,
        now,
        head,
    }))
}

/// The address that the API has it at leads to its page too.
pub async fn of_resource(Path((_, id)): Path<(String, String)>) -> Redirect {
    Redirect::permanent(&place(&encode(&id)))
}

/// What moves, as it moves.
pub async fn live(
    State(app): AppState,
    Extension(live): Listeners,
    Path(id): Path<String>,
) -> Result<Response, flare_http::error::ApiError> {
    live::listen(&app, &live, Topic::Subscription(SubscriptionId::new(id)))
}

/// The streams of the page.
pub async fn stream(app: &App, id: &SubscriptionId) -> Option<String> {
    let head = Head::of(app, id.as_str(), Tab::Overview).await.ok()?;
    let now = Now::of(app, &head).await.ok()?;
    Some(live::replace("now", &now.render().ok()?))
}

impl Now {
    async fn of(app: &App, head: &Head) -> Done<Now> {
        let (resource, id) = head.ids();
        let status = &head.status;
        let attempts = app.attempts(&resource, &id, &Wanted::default(), 0, PLOTTED)?.attempts;
        let drift = DriftQuery { lagging: true, limit: LACKING, offset: 0, after: None };
        let lacking = match status.feed.lagging + status.failed + status.discarded {
            0 => Vec::new(),
            _ => app.drift(&resource, &id, drift).await?.documents,
        };
        let place = head.place();
        let now = app.clock.now();
        Ok(Now {
            state: head.state(),
            since: Ago { now, at: status.since },
            reason: status.reason.as_deref().map(Words::of),
            counts: counts(head),
            facts: facts(app, head),
            latency: Latency::of(&attempts),
            recent: attempts
                .iter()
                .take(RECENT)
                .map(|attempt| AttemptRow::of(&place, now, attempt))
                .collect(),
            lacking_more: lacking.len() == LACKING,
            lacking: lacking.into_iter().map(|drift| Row::of(id.as_str(), drift)).collect(),
            passive: head.is_passive(),
            place,
        })
    }
}

/// The settings with every default, but for credentials.
fn settings(head: &Head) -> String {
    let mut draft = completed(&head.subscription.stored.draft, &head.subscription.compiled.spec);
    draft.endpoint = redacted(&draft.endpoint);
    let pretty = match head.is_producer() {
        true => serde_json::to_string_pretty(&ProducerDraft::of(draft)),
        false => serde_json::to_string_pretty(&draft),
    };
    numbers_in_line(&pretty.expect("a draft is plain data"))
}

/// Lists of numbers, like statuses, take a line and not a hundred.
fn numbers_in_line(pretty: &str) -> String {
    let mut text = String::with_capacity(pretty.len());
    let is_number = |line: &str| line.trim_end_matches(',').parse::<f64>().is_ok();
    let mut in_list = false;
    for line in pretty.lines() {
        let part = line.trim_start();
        let goes_on = in_list && (is_number(part) || part.starts_with(']'));
        let begins = !goes_on && is_number(part) && text.ends_with('[');
        match goes_on || begins {
            true if text.ends_with(',') => text.push(' '),
            true => {}
            false if text.is_empty() => {}
            false => text.push('\n'),
        }
        text.push_str(if goes_on || begins { part } else { line });
        in_list = (goes_on || begins) && !part.starts_with(']');
    }
    text
}

fn counts(head: &Head) -> Vec<Count> {
    let (status, feed) = (&head.status, &head.status.feed);
    let count = |label, number: u64, tone, hint| {
        let tone = if number > 0 { tone } else { "" };
        Count { label, value: text::number(number), tone, hint }
    };
    let lagging = match feed.sweep {
        None => "documents that it is yet to be told of",
        Some(SweepView::Beginning) => "so far; everything there is, is being gone through",
        Some(SweepView::Replay) => "so far; a replay goes through everything",
        Some(SweepView::Filter) => "so far; the changed filter goes through everything",
    };
    let open = if head.is_passive() { "Leased" } else { "In flight" };
    vec![
        count("Delivered", status.delivered, "", "notifications that the client took"),
        count("Failed", status.failed, "warn", "attempts that were not taken"),
        count("Discarded", status.discarded, "", "dropped, as the client asked"),
        count("Held", feed.held, "", "documents that the client has"),
        Count { value: text::lagging(feed), ..count("Lagging", feed.lagging, "warn", lagging) },
        count("Waiting", feed.waiting, "warn", "documents waiting for a retry"),
        count(open, feed.in_flight, "", "open right now"),
        count("Dead letters", feed.dead_letters, "bad", "documents that were given up"),
    ]
}

fn facts(app: &App, head: &Head) -> Vec<(&'static str, Words)> {
    let (status, now) = (&head.status, app.clock.now());
    let ago = |at| Words::default().moment(Ago { now, at });
    let mut facts = vec![("Last success", status.last_success_at.map_or(Words::of("none yet"), ago))];
    if let Some(failure) = &status.last_failure {
        let answer = failure.status.map_or(String::new(), |status| format!(" ({status})"));
        facts.push(("Last failure", ago(failure.at).text(&format!("{answer}: {}", failure.error))));
    }
    if let Some(breaker) = &status.breaker {
        let words = format!("{} does not answer and is left alone; tried again ", breaker.host);
        facts.push(("Circuit breaker", Words::of(&words).moment(Ago { now, at: breaker.retry_at })));
    }
    if let Some(connections) = &status.connections {
        facts.push(("Connections", Words::of(&connections.detail)));
    }
    if let Some(throttle) = &status.throttle {
        let words = Words::of("one request at a time since ").moment(Ago { now, at: throttle.since });
        facts.push((
            "Throttle",
            match throttle.next_at {
                Some(at) => words.text(", the next ").moment(Ago { now, at }),
                None => words,
            },
        ));
    }
    let feed = &status.feed;
    let position = format!("{} of {} changes", text::number(feed.cursor), text::number(feed.head));
    facts.push(("Position", Words::of(&position)));
    if let Some(filter) = &status.filter {
        let left_out = format!(
            "{} kept away, {} not told, {}",
            text::number(filter.excluded),
            text::number(filter.not_told),
            text::count(filter.errors, "error", "errors")
        );
        facts.push(("Expressions", Words::of(&left_out)));
        if let Some(error) = &filter.last_error {
            let words = format!(", {}: {}", error.document, error.error);
            facts.push(("Last error of an expression", ago(error.at).text(&words)));
        }
    }
    if status.skipped_revisions > 0 {
        facts.push(("Revisions skipped", Words::of(&text::number(status.skipped_revisions))));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_list_stand_in_one_line() {
        let value = serde_json::json!({"a": [200, 201], "b": 5, "c": ["x", 7], "d": [], "e": {"f": [1.5]}});
        let shown = numbers_in_line(&serde_json::to_string_pretty(&value).unwrap());
        let lines = [
            "{",
            "  \"a\": [200, 201],",
            "  \"b\": 5,",
            "  \"c\": [",
            "    \"x\",",
            "    7",
            "  ],",
            "  \"d\": [],",
            "  \"e\": {",
            "    \"f\": [1.5]",
            "  }",
            "}",
        ];
        assert_eq!(shown, lines.join("\n"));
    }
}
