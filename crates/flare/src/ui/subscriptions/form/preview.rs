//! `POST /ui/resources/:rid/subscriptions/preview`: a draft comes in, and when its retry policy would try goes out.

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{App, Failure};
use flare_http::AppState;
use flare_model::retry::{Plan, RetryDraft};
use http::HeaderMap;
use serde::Deserialize;

use super::create::resource;
use super::draft::DraftForm;
use crate::ui::form::draft;
use crate::ui::page::{Frame, PageError, Section, Visit, html, message};
use crate::ui::subscriptions::plot::{Bar, short, waits};
use crate::ui::text;

/// Attempts that are drawn, at most.
const DRAWN: usize = 60;
/// Attempts that are told, at most.
const TOLD: usize = 8;

#[derive(Template)]
#[template(path = "subscriptions/preview.html")]
struct Page {
    frame: Frame,
    preview: Result<Preview, String>,
}

/// When a policy would try.
pub struct Preview {
    /// A bar for each wait.
    pub bars: Vec<Bar>,
    /// The same in words.
    pub label: String,
    /// The longest wait.
    pub longest: String,
    /// The first attempts, and the last that is drawn.
    pub rows: Vec<Row>,
    /// How it ends.
    pub end: String,
    /// What happens to it where the client fails again and again.
    pub throttle: String,
}

/// One attempt.
pub struct Row {
    /// Its number.
    pub attempt: u32,
    /// When it is planned.
    pub after: String,
    /// What jitter makes of that.
    pub between: String,
}

/// The part of a draft that this is about; what the rest says does not matter.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Within {
    delivery: Delivery,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Delivery {
    retry: RetryDraft,
}

/// Shows the plan.
pub async fn handle(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    resource(&app, &id)?;
    let sent = DraftForm::read(&app, &headers, body).await?;
    let preview = of_draft(&app, &sent);
    Ok(html(&Page { frame: visit.frame(Section::Subscriptions, "When it would try"), preview }))
}

/// When a draft would try, or what is wrong with it.
pub fn of_draft(app: &App, sent: &DraftForm) -> Result<Preview, String> {
    plan(app, sent).map(|plan| Preview::of(&plan)).map_err(message)
}

fn plan(app: &App, sent: &DraftForm) -> Result<Plan, Failure> {
    let Within { delivery } = draft(sent.json()?)?;
    app.plan_retries(delivery.retry, DRAWN)
}

impl Preview {
    fn of(plan: &Plan) -> Preview {
        let bars = waits(plan);
        let row = |at: usize| {
            let planned = &plan.attempts[at];
            let span = |span: flare_model::duration::HumanDuration| short(span.0);
            Row {
                attempt: planned.attempt,
                after: if at == 0 { "at once".to_owned() } else { span(planned.after) },
                between: match at {
                    0 => String::new(),
                    _ => format!("{} to {}", span(planned.earliest), span(planned.latest)),
                },
            }
        };
        let shown = plan.attempts.len();
        // The first ones, and the last that is drawn.
        let mut told: Vec<usize> = (0..shown.min(TOLD)).collect();
        if shown > TOLD {
            told.push(shown - 1);
        }
        let end = match &plan.gives_up {
            Some(end) => format!(
                "Given up after {} and {}: {}.",
                text::count(u64::from(end.attempt), "attempt", "attempts"),
                short(end.after.0),
                end.detail
            ),
            None => "The end is too far away to tell.".to_owned(),
        };
        let longest =
            plan.attempts.windows(2).map(|pair| pair[1].after.0.saturating_sub(pair[0].after.0)).max();
        let longest = short(longest.unwrap_or_default());
        let label = format!("The waits before {} attempts, the longest {longest}. {end}", bars.len());
        let throttle = format!("To a client that fails again and again: {}.", plan.throttle.detail);
        Preview { bars, label, longest, rows: told.into_iter().map(row).collect(), end, throttle }
    }
}
