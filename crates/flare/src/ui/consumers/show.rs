//! `GET /ui/consumers/:id`: one consumer, how it fares, and the messages that it could not read.

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::{ConsumerLetterView, ConsumerReplayView, ConsumerStatusView};
use flare_http::AppState;
use flare_model::consumer::ConsumerView;
use flare_model::ids::ResourceId;

use super::place;
use crate::ui::moment::Moment;
use crate::ui::page::{Frame, PageError, Section, Visit, html};
use crate::ui::text;

/// So many dead letters are shown; the API lists all.
const LETTERS: u64 = 20;

#[derive(Template)]
#[template(path = "consumers/show.html")]
struct Page {
    frame: Frame,
    view: ConsumerView,
    status: ConsumerStatusView,
    since: Moment,
    created: Moment,
    last_message: Option<Moment>,
    last_failure: Option<(Moment, String)>,
    source: String,
    payload: String,
    documents: u64,
    producers: u64,
    letters: Vec<(Moment, ConsumerLetterView)>,
    /// The newest first.
    replays: Vec<(Moment, ConsumerReplayView)>,
    place: String,
    delete_to: String,
    discard_to: String,
}

/// Shows the consumer.
pub async fn handle(
    State(app): AppState,
    Path(id): Path<String>,
    visit: Visit,
) -> Result<Response, PageError> {
    let id = ResourceId::new(id);
    let consumer = app.consumer(&id)?;
    let view = app.consumer_view(&consumer).await?;
    let status = app.consumer_status(&id).await?;
    let (_, letters) = app.consumer_letters(&id, 0, LETTERS).await?;
    let (_, replays) = app.consumer_replays(&id, 0, usize::MAX)?;
    let lanes = app.store.documents.lanes().await?;
    let mine = lanes.iter().filter(|lane| lane.lane.resource == consumer.resource.number);
    let pretty = |value: serde_json::Result<Vec<u8>>| text::pretty(&value.unwrap_or_default());
    let place = place(id.as_str());
    let page = Page {
        frame: visit
            .frame(Section::Consumers, &consumer.resource.view.endpoint)
            .under("Consumers", "/ui/consumers"),
        since: Moment(status.since),
        created: Moment(view.created_at),
        last_message: status.last_message_at.map(Moment),
        last_failure: status.last_failure.as_ref().map(|failed| (Moment(failed.at), failed.error.clone())),
        source: pretty(serde_json::to_vec(&view.source)),
        payload: pretty(serde_json::to_vec(&view.payload)),
        documents: mine.map(|lane| lane.documents).sum(),
        producers: app.registry.subscriptions(&id, 0, 0).total as u64,
        letters: letters.into_iter().map(|letter| (Moment(letter.received_at), letter)).collect(),
        replays: replays.into_iter().rev().map(|replay| (Moment(replay.created_at), replay)).collect(),
        delete_to: format!("{place}/delete"),
        discard_to: format!("{place}/discard"),
        place,
        view,
        status,
    };
    Ok(html(&page))
}
