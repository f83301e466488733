//! From an attempt and its document to the request that is sent: url, headers, body.

use bytes::{BufMut, Bytes, BytesMut};
use flare_model::document::Document;
use flare_model::feed::{Action, Attempt, Kept};
use flare_model::subscription::EventMode;
use flare_model::time::Timestamp;
use flare_wire::{Name, Request, Room};

use crate::notification::change::{BodyKey, Change};
use crate::notification::compiled::Compiled;
use crate::notification::event::{self, Told};
use crate::notification::ids::{notification_id, replay_id};
use crate::notification::payload::{JSON, Payload, data, is_text, payload, put_json, put_raw};

const FLARE_ACTION: Name<'static> = Name::fixed("flare-action");
const FLARE_SEQUENCE: Name<'static> = Name::fixed("flare-sequence");
const FLARE_REPLAY: Name<'static> = Name::fixed("flare-replay");
const FLARE_PATCH_FROM: Name<'static> = Name::fixed("flare-patch-from");
/// The header with the type of the body.
pub const CONTENT_TYPE: Name<'static> = Name::fixed("content-type");
/// The header with the time of sending, in seconds.
pub const WEBHOOK_TIMESTAMP: Name<'static> = Name::fixed("webhook-timestamp");
const WEBHOOK_SIGNATURE: Name<'static> = Name::fixed("webhook-signature");

/// The header with the notification's id.
pub const WEBHOOK_ID: Name<'static> = Name::fixed("webhook-id");

/// The request of one attempt. With the state that the client has, an update may be told as a patch. It is written into
/// `room`, which may have been used before.
pub fn request(
    compiled: &Compiled,
    change: &Change,
    attempt: &Attempt,
    state: Option<&Kept>,
    now: Timestamp,
    room: Room,
) -> Request {
    let id = notification_id(compiled, &change.document.url, attempt);
    request_as(compiled, change, attempt, state, now, room, id.as_str())
}

/// The same under an id of its own.
pub fn request_as(
    compiled: &Compiled,
    change: &Change,
    attempt: &Attempt,
    state: Option<&Kept>,
    now: Timestamp,
    room: Room,
    id: &str,
) -> Request {
    let document = &change.document;
    let parts = &compiled.requests[attempt.action as usize];
    let name = compiled.resource.name(&document.url, &document.revision);
    let texts = change.texts(name);
    let mut request = Request::new(room, &parts.beginning, |path| {
        if let Some(target) = compiled.spec.target(attempt.action) {
            target.url.render_path(&compiled.resource.values(name), &texts.revision, path);
        }
    });
    request.lines(&texts.lines);
    request.text(FLARE_ACTION, attempt.action.as_str());
    request.number(FLARE_SEQUENCE, compiled.sequences_from + attempt.seq.0);
    if attempt.replay != 0 {
        request.text(FLARE_REPLAY, &replay_id(attempt.replay));
    }
    let payload = payload(compiled, document, attempt.action, state);
    if let Payload::Patch { from, .. } = &payload {
        request.text(FLARE_PATCH_FROM, &from.to_string());
    }
    let (body, kind) = body(compiled, change, attempt, &payload, id, &mut request);
    if !body.is_empty() && !parts.own_content_type {
        request.text(CONTENT_TYPE, kind);
    }
    let mut seconds = itoa::Buffer::new();
    let seconds = seconds.format(now.millis().div_euclid(1000));
    request.text(WEBHOOK_ID, id);
    request.text(WEBHOOK_TIMESTAMP, seconds);
    if compiled.signer.signs(now) {
        request.compose(WEBHOOK_SIGNATURE, |value| {
            compiled.signer.sign(id.as_bytes(), seconds.as_bytes(), &body, now, value);
        });
    }
    request.set_body(body);
    request
}

/// The body and its type; an event in binary mode also has headers.
fn body(
    compiled: &Compiled,
    change: &Change,
    attempt: &Attempt,
    payload: &Payload<'_>,
    id: &str,
    request: &mut Request,
) -> (Bytes, &'static str) {
    let content = &compiled.spec.content;
    let (document, action) = (&change.document, attempt.action);
    match &content.event {
        Some(event) if event.mode == EventMode::Structured => {
            (event::structured(&Told { compiled, document, attempt, id, event }, payload), event::STRUCTURED)
        }
        Some(event) => {
            event::add_headers(&Told { compiled, document, attempt, id, event }, request);
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
    put_json(&mut out, compiled.resource.name(&document.url, &document.revision));
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
        Payload::Raw(bytes) => {
            if !is_text(bytes) {
                out.put_slice(b",\"encoding\":\"base64\"");
            }
            out.put_slice(b",\"document\":");
            put_raw(&mut out, bytes);
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
