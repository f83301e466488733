//! CloudEvents 1.0: a notification comes in; the event goes out, as a body of JSON or as headers beside the document.

use bytes::{BufMut as _, Bytes, BytesMut};
use flare_model::document::Document;
use flare_model::feed::{Action, Attempt};
use flare_model::subscription::Event;
use flare_wire::{Name, Request};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;

use crate::notification::compiled::Compiled;
use crate::notification::ids::replay_id;
use crate::notification::payload::{Payload, data, is_text, put_json, put_raw};

/// The type of a body that is a whole event.
pub const STRUCTURED: &str = "application/cloudevents+json";

/// What the HTTP binding encodes in a header: everything but printable ASCII, and of that the blank, the double quote
/// and the percent sign.
const IN_A_HEADER: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// What an event tells.
pub struct Told<'a> {
    /// The subscription.
    pub compiled: &'a Compiled,
    /// The document.
    pub document: &'a Document,
    /// What is told of it.
    pub attempt: &'a Attempt,
    /// The notification's id, which is also the event's.
    pub id: &'a str,
    /// The subscription's kind of events.
    pub event: &'a Event,
}

impl Told<'_> {
    /// Every attribute but the type of the data, in order. Revision and sequence are texts: an integer of CloudEvents
    /// has 32 bits.
    fn attributes(&self, mut put: impl FnMut(&str, &Value)) {
        let kind = match self.attempt.action {
            Action::Create => "flare.document.create",
            Action::Update => "flare.document.update",
            Action::Delete => "flare.document.delete",
        };
        put("specversion", &"1.0".into());
        put("id", &self.id.into());
        put("source", &(*self.event.source).into());
        put("type", &kind.into());
        let document = self.document;
        put("subject", &self.compiled.resource.name(&document.url, &document.revision).into());
        put("time", &self.document.updated_at.to_string().into());
        put("flarerevision", &self.document.revision.to_string().into());
        put("flaresequence", &(self.compiled.sequences_from + self.attempt.seq.0).to_string().into());
        if self.attempt.replay != 0 {
            put("flarereplay", &replay_id(self.attempt.replay).into());
        }
        if !self.compiled.spec.data.is_empty() {
            for (name, value) in data(self.compiled, self.document) {
                // Numbers here are small integers, which a value of this kind keeps as they were written.
                put(name, &serde_json::to_value(value).expect("it is a text, a boolean or a number"));
            }
        }
    }
}

/// The whole event as JSON. It is built for each subscription: the id in it is the subscription's own.
pub fn structured(told: &Told<'_>, payload: &Payload<'_>) -> Bytes {
    let (bytes, kind) = payload.parts();
    let mut out = BytesMut::with_capacity(bytes.len() + 2 * told.document.url.len() + 400);
    out.put_u8(b'{');
    told.attributes(|name, value| {
        if out.len() > 1 {
            out.put_u8(b',');
        }
        put_json(&mut out, name);
        out.put_u8(b':');
        put_json(&mut out, value);
    });
    if let Payload::Raw(bytes) = payload {
        let field = if is_text(bytes) { ",\"data\":" } else { ",\"data_base64\":" };
        out.put_slice(field.as_bytes());
        put_raw(&mut out, bytes);
    } else if !bytes.is_empty() {
        out.put_slice(b",\"datacontenttype\":\"");
        out.put_slice(kind.as_bytes());
        out.put_slice(b"\",\"data\":");
        out.put_slice(&bytes);
    }
    out.put_u8(b'}');
    out.freeze()
}

/// The event beside its data: each attribute is a header `ce-<name>`. The type of the data is the `Content-Type`.
pub fn add_headers(told: &Told<'_>, request: &mut Request) {
    told.attributes(|name, value| {
        let name = format!("ce-{name}");
        let name = Name::new(&name).expect("names of attributes were checked");
        request.compose(name, |header| match value {
            Value::String(text) => {
                utf8_percent_encode(text, IN_A_HEADER).for_each(|piece| header.push(piece))
            }
            other => header.push(&other.to_string()),
        });
    });
}
