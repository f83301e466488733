//! From an attempt and its document to the request that is sent: url, headers, body.

use bytes::{BufMut, Bytes, BytesMut};
use flare_model::document::Document;
use flare_model::feed::{Action, Attempt, Kept};
use flare_model::subscription::EventMode;
use flare_model::time::Timestamp;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Request, Uri};

use crate::notification::change::{BodyKey, Change, header};
use crate::notification::compiled::Compiled;
use crate::notification::event::{self, Told};
use crate::notification::ids::{notification_id, replay_id};
use crate::notification::payload::{JSON, Payload, data, payload, put_json};

const FLARE_DOCUMENT: HeaderName = HeaderName::from_static("flare-document");
const FLARE_ACTION: HeaderName = HeaderName::from_static("flare-action");
const FLARE_REVISION: HeaderName = HeaderName::from_static("flare-revision");
const FLARE_SEQUENCE: HeaderName = HeaderName::from_static("flare-sequence");
const FLARE_REPLAY: HeaderName = HeaderName::from_static("flare-replay");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const FLARE_PATCH_FROM: HeaderName = HeaderName::from_static("flare-patch-from");
/// How many headers most requests have beside those of the subscription.
const OUR_HEADERS: usize = 8;

/// A request with its body, which is whole.
pub type Outgoing = Request<Bytes>;

/// The request of one attempt. With the state that the client has, an update may be told as a patch. The headers are
/// put into `room`, an empty map that may have been used before.
pub fn request(
    compiled: &Compiled,
    change: &Change,
    attempt: &Attempt,
    state: Option<&Kept>,
    now: Timestamp,
    room: HeaderMap,
) -> Outgoing {
    let id = notification_id(compiled, &change.document.url, attempt);
    request_as(compiled, change, attempt, state, now, room, id)
}

/// The same under an id of its own.
pub fn request_as(
    compiled: &Compiled,
    change: &Change,
    attempt: &Attempt,
    state: Option<&Kept>,
    now: Timestamp,
    room: HeaderMap,
    id: String,
) -> Outgoing {
    let document = &change.document;
    let parts = &compiled.requests[attempt.action as usize];
    let target = compiled.spec.target(attempt.action);
    let texts = change.texts();
    let mut path = String::with_capacity(128);
    target.url.render_path(&compiled.resource.values(&document.url), &texts.revision, &mut path);
    let path =
        PathAndQuery::from_maybe_shared(Bytes::from(path)).expect("what is rendered is percent-encoded");

    let mut headers = room;
    headers.reserve(parts.headers.len() + OUR_HEADERS);
    for (name, value) in &parts.headers {
        headers.append(name, value.clone());
    }
    headers.insert(FLARE_DOCUMENT, texts.document.clone());
    headers.insert(FLARE_ACTION, HeaderValue::from_static(attempt.action.as_str()));
    headers.insert(FLARE_REVISION, texts.revision_header.clone());
    headers.insert(FLARE_SEQUENCE, HeaderValue::from(attempt.seq.0));
    if attempt.replay != 0 {
        headers.insert(FLARE_REPLAY, header(replay_id(attempt.replay)));
    }
    let payload = payload(compiled, document, attempt.action, state);
    if let Payload::Patch { from, .. } = &payload {
        headers.insert(FLARE_PATCH_FROM, header(from.to_string()));
    }
    let (body, kind) = body(compiled, change, attempt, &payload, &id, &mut headers);
    if !body.is_empty() && !parts.own_content_type {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    let id = header(id);
    let timestamp = HeaderValue::from(now.millis().div_euclid(1000));
    if let Some(signature) = compiled.signer.sign(id.as_bytes(), timestamp.as_bytes(), &body, now) {
        headers.insert(WEBHOOK_SIGNATURE, signature);
    }
    headers.insert(WEBHOOK_ID, id);
    headers.insert(WEBHOOK_TIMESTAMP, timestamp);
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = Uri::from(path);
    *request.headers_mut() = headers;
    request
}

/// The body and its type; an event in binary mode also has headers.
fn body(
    compiled: &Compiled,
    change: &Change,
    attempt: &Attempt,
    payload: &Payload<'_>,
    id: &str,
    headers: &mut HeaderMap,
) -> (Bytes, &'static str) {
    let content = &compiled.spec.content;
    let (document, action) = (&change.document, attempt.action);
    match &content.event {
        Some(event) if event.mode == EventMode::Structured => {
            (event::structured(&Told { compiled, document, attempt, id, event }, payload), event::STRUCTURED)
        }
        Some(event) => {
            event::add_headers(&Told { compiled, document, attempt, id, event }, headers);
            payload.parts()
        }
        None if !content.envelope => payload.parts(),
        // A patch is one client's own; everything else is shared.
        None if matches!(payload, Payload::Patch { .. }) => {
            (envelope(compiled, document, action, payload), JSON)
        }
        None => {
            let key = BodyKey { action, shape: compiled.shape };
            (change.body(key, || envelope(compiled, document, action, payload)), JSON)
        }
    }
}

fn envelope(compiled: &Compiled, document: &Document, action: Action, payload: &Payload<'_>) -> Bytes {
    let size = payload.parts().0.len();
    let mut out = BytesMut::with_capacity(size + document.url.len() + 200);
    out.put_slice(b"{\"id\":");
    put_json(&mut out, &*document.url);
    out.put_slice(b",\"action\":\"");
    out.put_slice(action.as_str().as_bytes());
    out.put_slice(b"\",\"revision\":");
    put_json(&mut out, &document.revision);
    out.put_slice(b",\"updatedAt\":");
    put_json(&mut out, &document.updated_at);
    if !compiled.spec.data.is_empty() {
        out.put_slice(b",\"data\":");
        put_json(&mut out, &data(compiled, document));
    }
    match payload {
        Payload::Nothing => {}
        Payload::Document(bytes) => {
            out.put_slice(b",\"document\":");
            out.put_slice(bytes);
        }
        Payload::Patch { bytes, from, .. } => {
            out.put_slice(b",\"patchFrom\":");
            put_json(&mut out, from);
            out.put_slice(b",\"patch\":");
            out.put_slice(bytes);
        }
    }
    out.put_slice(b"}");
    out.freeze()
}
