//! `GET /ui`: how it goes, as it goes.

use std::time::Duration;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use flare_core::observe::{Gauges, Percentiles, Point, Series};
use flare_core::operations::{App, Done};
use flare_http::AppState;
use flare_http::error::ApiError;

use super::live::{self, Listeners, Topic};
use super::page::{Frame, PageError, Section, Visit, html};
use super::plot::{Drawing, Join, Line, Plot, Unit, Window};
use super::text;

/// Clients in trouble that are shown; the list of subscriptions has all.
const TROUBLED: usize = 8;

/// How far back the plots go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Range {
    /// Five minutes.
    Minutes,
    /// Half an hour.
    HalfHour,
    /// Two hours.
    Hours,
    /// A day.
    Day,
    /// Seven days.
    Week,
    /// Thirty days.
    Month,
}

impl Range {
    const ALL: [Range; 6] =
        [Range::Minutes, Range::HalfHour, Range::Hours, Range::Day, Range::Week, Range::Month];

    /// Those that a history which goes back so far has something for.
    fn offered(longest: Duration) -> Vec<Range> {
        let within = |range: &Range| *range == Range::Minutes || range.span() <= longest;
        Range::ALL.into_iter().filter(within).collect()
    }

    fn of(text: Option<&str>) -> Range {
        Range::ALL.into_iter().find(|range| Some(range.name()) == text).unwrap_or(Range::Minutes)
    }

    /// Its name in the address.
    fn name(self) -> &'static str {
        match self {
            Range::Minutes => "5m",
            Range::HalfHour => "30m",
            Range::Hours => "2h",
            Range::Day => "24h",
            Range::Week => "7d",
            Range::Month => "30d",
        }
    }

    fn is(&self, other: &Range) -> bool {
        self == other
    }

    fn label(self) -> &'static str {
        match self {
            Range::Minutes => "5 min",
            Range::HalfHour => "30 min",
            Range::Hours => "2 h",
            Range::Day => "24 h",
            Range::Week => "7 days",
            Range::Month => "30 days",
        }
    }

    fn span(self) -> Duration {
        Duration::from_secs(match self {
            Range::Minutes => 300,
            Range::HalfHour => 1800,
            Range::Hours => 7200,
            Range::Day => 86_400,
            Range::Week => 7 * 86_400,
            Range::Month => 30 * 86_400,
        })
    }
}

#[derive(Template)]
#[template(path = "dashboard.html")]
struct Page {
    frame: Frame,
    range: Range,
    ranges: Vec<Range>,
    now: Now,
}

/// What moves.
#[derive(Template)]
#[template(path = "dashboard-now.html")]
struct Now {
    resources: u64,
    documents: u64,
    tombstones: u64,
    accepted: String,
    delivered: String,
    failed: String,
    latency: String,
    gauges: Gauges,
    troubled: Vec<Troubled>,
    /// How many clients in trouble are not shown.
    more_troubled: u64,
    plots: Vec<Drawing>,
}

/// A client in trouble.
struct Troubled {
    id: String,
    resource: String,
    url: String,
    status: &'static str,
    since: String,
    reason: String,
    lagging: u64,
}

/// Shows the dashboard.
pub async fn handle(State(app): AppState, visit: Visit) -> Result<Response, PageError> {
    let range = Range::of(visit.query("range").as_deref());
    let now = Now::of(&app, range).await?;
    let frame = visit.frame(Section::Dashboard, "Dashboard");
    let ranges = Range::offered(app.history.longest());
    Ok(html(&Page { frame, range, ranges, now }))
}

/// What moves, as it moves.
pub async fn live(
    State(app): AppState,
    Extension(live): Listeners,
    visit: Visit,
) -> Result<Response, ApiError> {
    live::listen(&app, &live, Topic::Dashboard(Range::of(visit.query("range").as_deref())))
}

/// The streams of the dashboard.
pub async fn stream(app: &App, range: Range) -> Option<String> {
    let now = Now::of(app, range).await.ok()?;
    Some(live::replace("now", &now.render().ok()?))
}

impl Now {
    async fn of(app: &App, range: Range) -> Done<Now> {
        let (resources, _) = app.registry.counts();
        let lanes = app.store.documents.lanes().await?;
        let series = app.history.last(range.span());
        let newest = app.history.newest();
        let rate = |read: fn(&Point) -> f64| Unit::PerSecond.say(newest.as_ref().map_or(0.0, read));
        let (troubled, more_troubled) = troubled(app).await?;
        let latency = series.points.iter().rev().find_map(|point| point.latency);
        Ok(Now {
            resources: resources as u64,
            documents: lanes.iter().map(|lane| lane.documents).sum(),
            tombstones: lanes.iter().map(|lane| lane.tombstones).sum(),
            accepted: rate(|point| point.accepted),
            delivered: rate(|point| point.delivered),
            failed: rate(|point| point.failed),
            latency: latency.map_or_else(|| "none yet".to_owned(), |latency| Unit::Time.say(latency.p95)),
            gauges: app.history.latest().map(|sample| sample.gauges.clone()).unwrap_or_default(),
            troubled,
            more_troubled,
            plots: plots(
                &series,
                &Window {
                    now: app.clock.now(),
                    span: shown(range, app.clock.monotonic()),
                    step: series.step,
                },
            ),
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

/// How much of a range is shown while the process is younger than that: a plot of five minutes of which all but ten
/// seconds are empty shows nothing. Round, so that the plot does not change its scale all the time.
fn shown(range: Range, age: Duration) -> Duration {
    const MINUTES: [u64; 11] = [1, 2, 5, 10, 30, 60, 120, 360, 720, 1440, 4320];
    let round =
        MINUTES.map(|minutes| Duration::from_secs(minutes * 60)).into_iter().find(|round| *round >= age);
    round.map_or(range.span(), |round| round.min(range.span()))
}

/// The first clients in trouble, and how many more there are.
async fn troubled(app: &App) -> Done<(Vec<Troubled>, u64)> {
    let now = app.clock.now();
    let found = app.troubled(TROUBLED).await?;
    let first = found
        .first
        .into_iter()
        .map(|view| {
            let known = app.registry.subscription_by_id(&view.id);
            Troubled {
                url: known.map(|known| text::client(&known)).unwrap_or_default(),
                id: view.id.to_string(),
                resource: view.resource.to_string(),
                status: view.status.status.as_str(),
                since: text::ago(now, view.status.since),
                reason: view.status.reason.unwrap_or_default(),
                lagging: view.status.feed.lagging,
            }
        })
        .collect();
    Ok((first, found.more as u64))
}

/// The plots, from the points of a time.
fn plots(series: &Series, window: &Window) -> Vec<Drawing> {
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
    plots.into_iter().map(|plot| plot.draw(window)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_young_process_shows_as_much_as_it_has() {
        for (range, age, seconds) in [
            (Range::Minutes, 3, 60),
            (Range::Minutes, 61, 120),
            (Range::Minutes, 299, 300),
            (Range::Minutes, 100_000, 300),
            (Range::Day, 61, 120),
            (Range::Day, 86_399, 86_400),
            (Range::Month, 86_401, 3 * 86_400),
            (Range::Month, 10_000_000, 30 * 86_400),
        ] {
            let shown = shown(range, Duration::from_secs(age));
            assert_eq!(shown, Duration::from_secs(seconds), "{range:?} after {age} s");
        }
    }

    #[test]
    fn only_ranges_that_the_history_reaches_are_offered() {
        let offered = |hours: u64| Range::offered(Duration::from_secs(hours * 3600)).len();
        assert_eq!([offered(0), offered(1), offered(24), offered(168), offered(8784)], [1, 2, 4, 5, 6]);
    }
}
