//! `GET /ui/subscriptions` and `GET /ui/resources/:rid/subscriptions`: looked for, a page at a time.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{App, FilterView, Standing, SubscriptionQuery};
use flare_http::AppState;
use flare_http::access::By;
use flare_http::error::ApiError;
use flare_model::access::Caller;
use flare_model::ids::ResourceId;
use flare_model::subscription::Status;

use super::head::{STATES, place};
use crate::ui::page::{Frame, PageError, Section, Visit, html};
use crate::ui::pager::Pager;
use crate::ui::text;

#[derive(Template)]
#[template(path = "subscriptions/list.html")]
struct Page {
    frame: Frame,
    /// Where the form of the search goes.
    here: String,
    create: String,
    words: String,
    states: Vec<(&'static str, bool)>,
    /// Whether there is anything to look through.
    any: bool,
    /// Whether there is anything to subscribe to.
    resources: bool,
    rows: Vec<Row>,
    pager: Pager,
}

/// One as it stands, in words.
pub struct Row {
    /// Its page.
    pub place: String,
    /// Where its notifications go.
    pub name: String,
    resource: String,
    resource_place: String,
    /// Its state.
    pub state: &'static str,
    /// Why.
    pub why: String,
    /// Where that is not the usual one.
    pub mode: &'static str,
    /// How many were.
    pub delivered: String,
    /// How many attempts did.
    pub failed: String,
    /// How many documents are.
    pub lagging: String,
    /// How many there are.
    pub dead_letters: String,
    /// Whether there are any.
    pub troubled: bool,
}

impl Row {
    /// How one stands.
    pub fn of(standing: Standing) -> Row {
        let Standing { subscription, status } = standing;
        let resource = &subscription.compiled.resource;
        Row {
            place: place(subscription.id()),
            name: text::client(&subscription),
            resource: resource.view.endpoint.clone(),
            resource_place: format!("/ui/resources/{}", resource.id()),
            state: status.status.as_str(),
            why: status.reason.unwrap_or_else(|| broken_expressions(status.filter.as_ref())),
            mode: match subscription.compiled.spec.mode {
                flare_model::subscription::Mode::Active => "",
                flare_model::subscription::Mode::Passive => "passive",
            },
            delivered: text::number(status.delivered),
            failed: text::number(status.failed),
            lagging: text::lagging(&status.feed),
            dead_letters: text::number(status.feed.dead_letters),
            troubled: status.feed.dead_letters > 0,
        }
    }
}

/// That an expression had no result lately, if so.
fn broken_expressions(filter: Option<&FilterView>) -> String {
    match filter.and_then(|filter| filter.last_error.as_ref().filter(|_| filter.erring)) {
        None => String::new(),
        Some(last) => format!("an expression has no result: {}", last.error),
    }
}

/// Those of all resources.
pub async fn all(State(app): AppState, By(by): By, visit: Visit) -> Result<Response, PageError> {
    page(&app, &by, visit, None).await
}

/// Those of one resource.
pub async fn of_resource(
    State(app): AppState,
    By(by): By,
    Path(resource): Path<String>,
    visit: Visit,
) -> Result<Response, PageError> {
    page(&app, &by, visit, Some(ResourceId::new(resource))).await
}

async fn page(
    app: &App,
    by: &Caller,
    visit: Visit,
    resource: Option<ResourceId>,
) -> Result<Response, PageError> {
    let page = Pager::query(app, visit.uri())?;
    let words = visit.query("q");
    let state = visit.query("state");
    let known = |text: &String| STATES.into_iter().find(|status| status.as_str() == text);
    let status = match &state {
        Some(text) => Some(known(text).ok_or_else(|| {
            ApiError::bad_request(format!(
                "state must be one of {}, got `{text}`",
                STATES.map(Status::as_str).join(", ")
            ))
        })?),
        None => None,
    };
    let query = SubscriptionQuery {
        resource: resource.clone(),
        words: words.clone(),
        status,
        offset: page.offset,
        limit: page.limit,
    };
    let found = app.find_subscriptions(by, &query).await?;
    let pager = Pager::new(visit.uri(), page, found.entries.len(), found.total);
    let (frame, here, create) = match &resource {
        None => {
            let frame = visit.frame(Section::Subscriptions, "Subscriptions");
            (frame, "/ui/subscriptions".to_owned(), "/ui/subscriptions/new".to_owned())
        }
        Some(id) => {
            let unknown = || ApiError::not_found(format!("there is no resource {id}"));
            let resource = app.registry.resource(id).ok_or_else(unknown)?;
            let frame =
                visit.frame(Section::Subscriptions, "Subscriptions").under("Resources", "/ui/resources");
            let frame = frame.under(resource.view.endpoint.as_str(), format!("/ui/resources/{id}"));
            let here = format!("/ui/resources/{id}/subscriptions");
            (frame, here.clone(), format!("{here}/new"))
        }
    };
    let (resources, subscriptions) = app.registry.counts_for(by);
    let any = match &resource {
        None => subscriptions > 0,
        Some(id) => {
            let resource = app.registry.resource(id);
            resource.is_some_and(|resource| app.registry.subscriptions_for(by, &resource, 0, 0).total > 0)
        }
    };
    Ok(html(&Page {
        frame,
        here,
        create,
        words: words.unwrap_or_default(),
        states: STATES.map(|status| (status.as_str(), Some(status.as_str()) == state.as_deref())).to_vec(),
        any,
        resources: resources > 0,
        rows: found.entries.into_iter().map(Row::of).collect(),
        pager,
    }))
}
