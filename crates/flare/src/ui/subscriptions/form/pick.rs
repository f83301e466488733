//! `GET /ui/subscriptions/new`: a subscription is one of a resource, so which? One is not asked about.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use flare_http::AppState;
use flare_http::access::By;
use flare_model::resource::Resource;

use crate::ui::page::{Frame, PageError, Section, Visit, html};

/// Resources shown at once; the search finds the others.
const SHOWN: usize = 50;

#[derive(Template)]
#[template(path = "subscriptions/pick.html")]
struct Page {
    frame: Frame,
    words: String,
    resources: Vec<Arc<Resource>>,
    more: bool,
    any: bool,
}

/// Shows the resources to choose from.
pub async fn handle(State(app): AppState, By(by): By, visit: Visit) -> Result<Response, PageError> {
    let words = visit.query("q").unwrap_or_default();
    let all = app.registry.resources_for(&by, 0, usize::MAX).entries;
    if let [only] = all.as_slice()
        && words.is_empty()
    {
        return Ok(Redirect::to(&format!("/ui/resources/{}/subscriptions/new", only.id())).into_response());
    }
    let any = !all.is_empty();
    let wanted = words.to_lowercase();
    let mut found: Vec<Arc<Resource>> = all
        .into_iter()
        .filter(|resource| resource.view.endpoint.to_lowercase().contains(&wanted))
        .take(SHOWN + 1)
        .collect();
    let more = found.len() > SHOWN;
    found.truncate(SHOWN);
    let frame = visit.frame(Section::Subscriptions, "New subscription");
    let frame = frame.under("Subscriptions", "/ui/subscriptions");
    Ok(html(&Page { frame, words, resources: found, more, any }))
}
