//! `GET /resources/:rid/subscriptions/:id/stream?quantity=&lease=`: Server-Sent Events.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flare_core::journey::passive::{Message, Open};
use flare_core::operations::{App, StreamQuery};
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode, Uri};
use tokio::sync::mpsc;

use super::{Ids, ids};
use crate::error::ApiError;
use crate::openapi::Notes;
use crate::{AppState, page, query};
use serde_json::json;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Hands out notifications of a passive subscription as they come, until the client leaves or the node stops.
pub async fn handle(
    State(app): AppState,
    path: Ids,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (resource, id) = ids(path);
    let mut order = StreamQuery::default();
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "quantity" => order.quantity = Some(query::number("quantity", &value)?),
            "lease" => order.lease = Some(query::duration("lease", &value)?),
            other => return Err(page::unknown(other, &["quantity", "lease"])),
        }
    }
    let last = headers.get(LAST_EVENT_ID).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    // A browser that never got an event sends an empty one.
    order.last_event_id = last.filter(|id| !id.is_empty());
    let Open { events, acknowledged } = app.stream(&resource, &id, order).await?;
    let hello = match acknowledged {
        Some(count) => format!(": {count} acknowledged by Last-Event-ID\n\n"),
        None => ": Last-Event-ID is not known, nothing is acknowledged by it\n\n".to_owned(),
    };
    let telling = Telling { app, events, hello: Some(hello) };
    let lines = stream::unfold(telling, |mut telling| async move {
        let lines = telling.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(lines), telling))
    });
    let mut response = (StatusCode::OK, Body::from_stream(lines)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

struct Telling {
    app: Arc<App>,
    events: mpsc::Receiver<Message>,
    hello: Option<String>,
}

impl Telling {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(hello) = self.hello.take() {
            return Some(hello.into());
        }
        let heartbeat = self.app.config.delivery.passive.heartbeat;
        tokio::select! {
            () = self.app.stop.cancelled() => None,
            event = self.events.recv() => event.map(|message| event_of(&message)),
            () = tokio::time::sleep(heartbeat) => Some(Bytes::from_static(b": still here\n\n")),
        }
    }
}

/// One event. A document may have line breaks between its parts, where they mean nothing; in an event each line has a
/// prefix of its own, and the client puts them together again.
fn event_of(message: &Message) -> Bytes {
    let json = serde_json::to_string(message).expect("a message is plain data");
    let mut event = format!("id: {}\n", message.id);
    for line in json.split(['\r', '\n']) {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event.into()
}

/// What the description says of it.
pub fn describe(it: &mut Notes<'_>) {
    let (quantity, lease) = (super::quantity(it), super::lease(it));
    let message = it.answer_schema::<Message>();
    let example = super::message();
    it.is("stream", "Pull mode", "Take notifications as they come")
        .text(
            "Server-Sent Events until the client leaves, the subscription is deleted or turned active, or the node \
             stops. The schema is that of the events, as a list. A comment comes first, and while it is quiet.",
        )
        .query("quantity", quantity, "At most so many unsettled notifications.", json!(10))
        .query("lease", lease, "For how long each is reserved.", json!("30s"))
        .header(
            "Last-Event-ID",
            json!({"type": "string"}),
            "Settles what that stream sent up to this event, and has what it sent after it sent again.",
            json!(example["id"]),
        )
        .answers_as(
            200,
            "An event for each notification.",
            "text/event-stream",
            json!({"type": "array", "items": {
                "type": "object",
                "required": ["id", "data"],
                "properties": {
                    "id": {"type": "string", "description": "The `webhook-id`."},
                    "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": message},
                },
            }}),
            json!([{"id": example["id"], "data": example.to_string()}]),
        )
        .with_header(200, "Cache-Control", json!({"const": "no-store"}), "Nothing of it is to be kept.")
        .refuses(400, "A parameter is not valid, or the subscription is active.")
        .refuses(409, "The subscription stands still.")
        .refuses(429, "As many wait as may.");
}
