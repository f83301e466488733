//! `GET /ui`: how it goes, as it goes.

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::live::{self, Topic};
use super::page::{Frame, PageError, Section, Visit, html};
use super::text;
use crate::http::AppState;
use crate::http::error::ApiError;
use crate::operations::{App, Done};

#[derive(Template)]
#[template(path = "dashboard.html")]
struct Page {
    frame: Frame,
    now: Now,
}

/// What moves.
#[derive(Template)]
#[template(path = "dashboard-now.html")]
struct Now {
    resources: u64,
    subscriptions: u64,
    documents: u64,
    tombstones: u64,
}

/// Shows the dashboard.
pub async fn handle(State(app): AppState, visit: Visit) -> Result<Response, PageError> {
    let now = Now::of(&app).await?;
    Ok(html(&Page { frame: visit.frame(Section::Dashboard, "Dashboard"), now }))
}

/// What moves, as it moves.
pub async fn live(State(app): AppState) -> Result<Response, ApiError> {
    live::listen(&app, Topic::Dashboard)
}

/// The streams of the dashboard.
pub async fn stream(app: &App) -> Option<String> {
    let now = Now::of(app).await.ok()?;
    Some(live::replace("now", &now.render().ok()?))
}

impl Now {
    async fn of(app: &App) -> Done<Now> {
        let (resources, subscriptions) = app.registry.counts();
        let lanes = app.store.documents.lanes().await?;
        Ok(Now {
            resources: resources as u64,
            subscriptions: subscriptions as u64,
            documents: lanes.iter().map(|lane| lane.documents).sum(),
            tombstones: lanes.iter().map(|lane| lane.tombstones).sum(),
        })
    }
}
