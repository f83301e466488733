//! `/ui/resources/:rid/subscriptions/new`: a draft comes in, and a subscription goes out with its secret, shown once.

use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{App, Failure};
use flare_http::AppState;
use flare_model::ids::ResourceId;
use flare_model::resource::Resource;
use http::{HeaderMap, StatusCode};
use serde_json::json;

use super::draft::{DraftForm, DraftPage};
use super::preview::of_draft;
use crate::ui::form::draft;
use crate::ui::page::{Frame, PageError, Section, Visit, html_with};
use crate::ui::subscriptions::head::place;
use crate::ui::text;

/// One that was created, with its secret.
#[derive(Template)]
#[template(path = "subscriptions/created.html")]
pub struct Created {
    /// Around the page.
    pub frame: Frame,
    /// What it is called.
    pub name: String,
    /// Where it is.
    pub place: String,
    /// What it is.
    pub kind: &'static str,
    /// What signs.
    pub secret: String,
    /// Whether it gets nothing until it asks.
    pub passive: bool,
}

/// Shows an empty draft.
pub async fn form(State(app): AppState, Path(id): Path<String>, visit: Visit) -> Result<Response, PageError> {
    let resource = resource(&app, &id)?;
    let as_json = visit.query("view").is_some_and(|view| view == "json");
    Ok(page(&app, visit, &resource, DraftForm::new(&json!({}), as_json)))
}

/// Shows a draft in its other view.
pub async fn switch(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let resource = resource(&app, &id)?;
    Ok(page(&app, visit, &resource, DraftForm::read(&app, &headers, body).await?.switched()?))
}

/// Creates what the draft says.
pub async fn submit(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageError> {
    let resource = resource(&app, &id)?;
    let mut sent = DraftForm::read(&app, &headers, body).await?;
    let draft = sent.json().and_then(|json| Ok(draft(json)?));
    match sent.form.submit(draft, |draft| app.create_subscription(resource.id(), draft)).await? {
        Some((subscription, secret)) => {
            let frame = visit.frame(Section::Subscriptions, "Subscription created");
            let created = Created {
                frame: frame.under("Subscriptions", "/ui/subscriptions"),
                name: text::client(&subscription),
                place: place(subscription.id()),
                kind: subscription.id().kind(),
                secret: secret.reveal(),
                passive: subscription.compiled.spec.mode == flare_model::subscription::Mode::Passive,
            };
            Ok(html_with(StatusCode::CREATED, &created))
        }
        None => Ok(page(&app, visit, &resource, sent)),
    }
}

fn page(app: &App, visit: Visit, resource: &Resource, draft: DraftForm) -> Response {
    let list = format!("/ui/resources/{}/subscriptions", resource.id());
    let frame = visit.frame(Section::Subscriptions, "New subscription");
    let frame = frame
        .under("Subscriptions", "/ui/subscriptions")
        .under(resource.view.endpoint.as_str(), list.as_str());
    let (save, switch) = (format!("{list}/new"), format!("{list}/draft"));
    let preview = of_draft(app, &draft);
    DraftPage { frame, draft, resource, head: None, save, switch, back: list, preview }.answer()
}

/// A resource by its id.
pub fn resource(app: &App, id: &str) -> Result<Arc<Resource>, Failure> {
    let found = app.registry.resource(&ResourceId::new(id));
    found.ok_or_else(|| Failure::NotFound(format!("there is no resource {id}")))
}
