//! `GET /ui`: how it goes, as it goes.

mod range;
mod tiles;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use flare_core::observe::{Gauges, Percentiles, Point, Series};
use flare_core::operations::{App, Done, TroubledView};
use flare_http::AppState;
use flare_http::access::By;
use flare_http::error::ApiError;
use flare_model::access::Account;

use super::live::{self, Listeners, Topic};
use super::moment::{Ago, Words};
use super::page::{Frame, PageError, Section, Visit, html};
use super::plot::{Drawing, Join, Line, Peaks, Plot, Unit, Window};
use super::text;
use range::shown;
use tiles::Tiles;

pub use range::Range;

/// Clients in trouble that are shown; the list of subscriptions has all.
const TROUBLED: usize = 8;

/// What of the past is looked at, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Look {
    /// How far back.
    pub range: Range,
    /// Whether scales reach up to the highest peaks.
    pub whole: bool,
}

#[derive(Template)]
#[template(path = "dashboard.html")]
struct Page {
    frame: Frame,
    range: Range,
    ranges: Vec<Range>,
    /// What the addresses of other ranges have beside them.
    more: &'static str,
    now: Now,
}

/// What moves.
#[derive(Template)]
#[template(path = "dashboard-now.html")]
struct Now {
    resources: u64,
    documents: u64,
    tombstones: u64,
    tiles: Tiles,
    gauges: Gauges,
    troubled: Vec<Troubled>,
    /// How many clients in trouble are not shown.
    more_troubled: u64,
    plots: Vec<Drawing>,
}

/// A client in trouble.
struct Troubled {
    id: String,
    url: String,
    status: &'static str,
    since: Ago,
    reason: Words,
    /// It has dead letters, which have a page.
    dead_letters: bool,
    lagging: String,
}

/// Shows the dashboard.
pub async fn handle(State(app): AppState, By(by): By, visit: Visit) -> Result<Response, PageError> {
    let look = Look::of(&visit);
    let now = Now::of(&app, look, &by.account).await?;
    let frame = visit.frame(Section::Dashboard, "Dashboard");
    let ranges = Range::offered(app.history.longest());
    let more = if look.whole { "&amp;scale=whole" } else { "" };
    Ok(html(&Page { frame, range: look.range, ranges, more, now }))
}

/// What moves, as it moves.
pub async fn live(
    State(app): AppState,
    Extension(live): Listeners,
    By(by): By,
    visit: Visit,
) -> Result<Response, ApiError> {
    live::listen(&app, &live, Topic::Dashboard(Look::of(&visit), by.account))
}

/// The streams of the dashboard.
pub async fn stream(app: &App, look: Look, account: &Account) -> Option<String> {
    let now = Now::of(app, look, account).await.ok()?;
    Some(live::replace("now", &now.render().ok()?))
}

impl Look {
    fn of(visit: &Visit) -> Look {
        let whole = visit.query("scale").as_deref() == Some("whole");
        Look { range: Range::of(visit.query("range").as_deref()), whole }
    }

    /// How peaks are shown, and where otherwise.
    fn peaks(self) -> Peaks {
        let scale = if self.whole { "" } else { "&scale=whole" };
        Peaks { whole: self.whole, other: format!("/ui?range={}{scale}", self.range.name()) }
    }
}

impl Now {
    async fn of(app: &App, look: Look, account: &Account) -> Done<Now> {
        let range = look.range;
        let (resources, _) = app.registry.counts();
        let lanes = app.store.documents.lanes().await?;
        let series = app.history.last(range.span());
        let (troubled, more_troubled) = troubled(app, account).await?;
        let span = shown(range, app.clock.monotonic());
        Ok(Now {
            resources: resources as u64,
            documents: lanes.iter().map(|lane| lane.documents).sum(),
            tombstones: lanes.iter().map(|lane| lane.tombstones).sum(),
            tiles: Tiles::of(&series, span),
            gauges: app.history.latest().map(|sample| sample.gauges.clone()).unwrap_or_default(),
            troubled,
            more_troubled,
            plots: plots(&series, &Window { now: app.clock.now(), span, step: series.step }, &look.peaks()),
        })
    }

    fn subscriptions(&self) -> u64 {
        self.gauges.subscriptions.each().iter().map(|(_, quantity)| quantity).sum()
    }

    /// The states that some subscription is in.
    fn states(&self) -> Vec<(&'static str, u64)> {
        self.gauges.subscriptions.each().into_iter().filter(|(_, quantity)| *quantity > 0).collect()
    }
}

/// The first clients in trouble, and how many more there are.
async fn troubled(app: &App, account: &Account) -> Done<(Vec<Troubled>, u64)> {
    let now = app.clock.now();
    let found = app.troubled(account, TROUBLED).await?;
    let first = found
        .first
        .into_iter()
        .map(|TroubledView { view, why }| {
            let known = app.registry.subscription_by_id(&view.id);
            Troubled {
                url: known.map(|known| text::client(&known)).unwrap_or_default(),
                id: view.id.to_string(),
                status: view.status.status.as_str(),
                since: Ago { now, at: view.status.since },
                dead_letters: view.status.feed.dead_letters > 0,
                reason: Words::of(&why),
                lagging: text::lagging(&view.status.feed),
            }
        })
        .collect();
    Ok((first, found.more as u64))
}

/// The plots, from the points of a time.
fn plots(series: &Series, window: &Window, peaks: &Peaks) -> Vec<Drawing> {
    let line = |label, class, read: fn(&Point) -> Option<f64>| {
        Line::new(label, class, series.points.iter().map(|point| (point.at, read(point))))
    };
    let percentiles = |read: fn(&Point) -> Option<Percentiles>| {
        let part = |label, class, part: fn(&Percentiles) -> f64| {
            let values = series.points.iter().map(|point| (point.at, read(point).as_ref().map(part)));
            Line::new(label, class, values)
        };
        vec![part("99 %", "c", |p| p.p99), part("95 %", "b", |p| p.p95), part("50 %", "a", |p| p.p50)]
    };
    let plots = [
        Plot {
            id: "deliveries",
            title: "Delivered per second",
            unit: Unit::PerSecond,
            join: Join::Mean,
            lines: vec![
                line("delivered", "a", |point| Some(point.delivered)),
                line("discarded", "d", |point| Some(point.discarded)),
            ],
        },
        Plot {
            id: "changes",
            title: "Changes per second",
            unit: Unit::PerSecond,
            join: Join::Mean,
            lines: vec![
                line("accepted", "a", |point| Some(point.accepted)),
                line("without news", "d", |point| Some(point.unchanged)),
                line("refused", "bad", |point| Some(point.refused)),
            ],
        },
        Plot {
            id: "latency",
            title: "Change to client",
            unit: Unit::Time,
            join: Join::Highest,
            lines: percentiles(|point| point.latency),
        },
        Plot {
            id: "answers",
            title: "Clients' answers",
            unit: Unit::Time,
            join: Join::Highest,
            lines: percentiles(|point| point.attempt),
        },
        Plot {
            id: "backlog",
            title: "Backlog",
            unit: Unit::Count,
            join: Join::Highest,
            lines: vec![
                line("owed", "a", |point| Some(point.gauges.backlog as f64)),
                line("waiting for a retry", "c", |point| Some(point.gauges.waiting as f64)),
            ],
        },
        Plot {
            id: "failures",
            title: "Failures per second",
            unit: Unit::PerSecond,
            join: Join::Mean,
            lines: vec![
                line("failed attempts", "c", |point| Some(point.failed)),
                line("given up", "bad", |point| Some(point.given_up)),
            ],
        },
    ];
    plots.into_iter().map(|plot| plot.draw(window, peaks)).collect()
}
