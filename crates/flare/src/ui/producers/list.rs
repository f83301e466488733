//! `GET /ui/consumers/:cid/producers`: who is told of what a consumer reads.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::{Redirect, Response};
use flare_core::operations::SubscriptionQuery;
use flare_http::AppState;
use flare_http::access::By;

use super::consumer;
use crate::ui::page::{Frame, PageError, Section, Visit, html};
use crate::ui::pager::{Pager, encode};
use crate::ui::subscriptions::{Row, place};

#[derive(Template)]
#[template(path = "producers/list.html")]
struct Page {
    frame: Frame,
    create: String,
    rows: Vec<Row>,
    pager: Pager,
}

/// Lists them.
pub async fn handle(
    State(app): AppState,
    By(by): By,
    Path(id): Path<String>,
    visit: Visit,
) -> Result<Response, PageError> {
    let consumer = consumer(&app, &id)?;
    let page = Pager::query(&app, visit.uri())?;
    let query = SubscriptionQuery {
        resource: Some(consumer.id().clone()),
        words: None,
        status: None,
        offset: page.offset,
        limit: page.limit,
    };
    let found = app.find_subscriptions(&by, &query).await?;
    let pager = Pager::new(visit.uri(), page, found.entries.len(), found.total);
    let frame = visit.frame(Section::Subscriptions, "Producers");
    Ok(html(&Page {
        frame: frame.under(consumer.view.endpoint.as_str(), format!("/ui/consumers/{}", consumer.id())),
        create: format!("/ui/consumers/{}/producers/new", consumer.id()),
        rows: found.entries.into_iter().map(Row::of).collect(),
        pager,
    }))
}

/// The address that the API has a producer at leads to its page too.
pub async fn one(Path((_, id)): Path<(String, String)>) -> Redirect {
    Redirect::permanent(&place(&encode(&id)))
}
