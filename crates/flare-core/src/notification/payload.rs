//! What a notification tells of a document: the whole, the difference to what its client has, or nothing; and the values of
//! one's own that a subscription adds.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut as _, Bytes, BytesMut};
use flare_model::document::Document;
use flare_model::feed::{Action, Kept};
use flare_model::patch::PatchKind;
use flare_model::revision::Revision;
use flare_model::subscription::{DataTemplate, ScalarTemplate};
use serde_json::value::RawValue;

use crate::notification::compiled::Compiled;

/// The type of a body that is JSON, and nothing more is said of it.
pub const JSON: &str = "application/json";

/// The type of a body of which nothing is known.
pub const ANYTHING: &str = "application/octet-stream";

/// What a notification tells of the document.
pub(crate) enum Payload<'a> {
    /// Nothing: it is deleted, or the subscription does not want it.
    Nothing,
    /// The document.
    Document(&'a Bytes),
    /// A message that is passed on as it is, whatever that is.
    Raw(&'a Bytes),
    /// The difference to what the client has.
    Patch {
        /// The difference.
        bytes: Bytes,
        /// In which words.
        kind: PatchKind,
        /// The revision that the client has.
        from: &'a Revision,
    },
}

impl Payload<'_> {
    /// Its bytes and their type.
    pub(crate) fn parts(&self) -> (Bytes, &'static str) {
        match self {
            Payload::Nothing => (Bytes::new(), JSON),
            Payload::Document(bytes) => (Bytes::clone(bytes), JSON),
            Payload::Raw(bytes) => (Bytes::clone(bytes), ANYTHING),
            Payload::Patch { bytes, kind, .. } => (bytes.clone(), kind.media_type()),
        }
    }
}

/// What a notification of an action tells. With the state that the client has, an update may be told as a patch.
pub fn payload<'a>(
    compiled: &Compiled,
    document: &'a Document,
    action: Action,
    state: Option<&'a Kept>,
) -> Payload<'a> {
    let content = &compiled.spec.content;
    if !content.document || action == Action::Delete {
        return Payload::Nothing;
    }
    let patch = content.patch.zip(state).and_then(|(kind, state)| {
        let bytes = kind.between(&state.content, &document.content)?;
        Some(Payload::Patch { bytes, kind, from: &state.revision })
    });
    match patch {
        Some(patch) => patch,
        None if compiled.resource.is_raw() => Payload::Raw(&document.content),
        None => Payload::Document(&document.content),
    }
}

/// Whether a message can stand in JSON as a text.
pub(crate) fn is_text(message: &[u8]) -> bool {
    std::str::from_utf8(message).is_ok()
}

/// A message as a value of JSON: its text, or in base64 where it is none.
pub(crate) fn put_raw(out: &mut BytesMut, message: &[u8]) {
    match std::str::from_utf8(message) {
        Ok(text) => put_json(out, text),
        Err(_) => put_json(out, &STANDARD.encode(message)),
    }
}

pub(crate) fn put_json(out: &mut BytesMut, value: &(impl serde::Serialize + ?Sized)) {
    serde_json::to_writer(out.writer(), value).expect("writing to memory does not fail");
}

/// A value of one's own, with what the document inserts into it.
#[derive(serde::Serialize)]
#[serde(untagged)]
pub(crate) enum Datum<'a> {
    Text(String),
    Boolean(bool),
    /// As it was written.
    Number(&'a RawValue),
    List(Vec<Datum<'a>>),
}

/// The values of one's own, by name.
pub(crate) fn data<'a>(compiled: &'a Compiled, document: &Document) -> BTreeMap<&'a str, Datum<'a>> {
    let resource = &compiled.resource;
    let values = resource.values(resource.name(&document.url, &document.revision));
    let revision = document.revision.to_string();
    let scalar = |template: &'a ScalarTemplate| match template {
        ScalarTemplate::Text(text) => Datum::Text(text.render(&values, &revision)),
        ScalarTemplate::Boolean(value) => Datum::Boolean(*value),
        ScalarTemplate::Number(written) => Datum::Number(written),
    };
    let value = |template: &'a DataTemplate| match template {
        DataTemplate::One(one) => scalar(one),
        DataTemplate::Many(many) => Datum::List(many.iter().map(scalar).collect()),
    };
    compiled.spec.data.iter().map(|(name, template)| (name.as_str(), value(template))).collect()
}
