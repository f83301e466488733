//! A notification that a client takes away itself: what would have been sent, as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flare_model::feed::{Action, Sent};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use flare_wire::Request;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::journey::subscriber::passive::token::Token;

/// One notification on a lease.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its `webhook-id`.
    pub id: String,
    /// The document's url.
    pub document: String,
    /// What is told of it.
    pub action: Action,
    /// The revision that is told.
    pub revision: Revision,
    /// The lease.
    pub token: Token,
    /// Which one that is, of those that its thread has given.
    pub lease: u64,
    /// The stream that gets it, if one does.
    pub sent: Option<Sent>,
    /// The request that would have been sent.
    pub request: Request,
}

/// A notification on a lease.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Message")]
struct View<'a> {
    /// The `webhook-id`.
    id: &'a str,
    /// The url of the document.
    document: &'a str,
    /// What is told.
    action: Action,
    /// In which revision.
    revision: &'a Revision,
    /// Which attempt for this revision, from 1.
    attempt: u32,
    /// The token that settles it.
    lease: String,
    /// When the lease ends by itself.
    lease_expires_at: Timestamp,
    /// The headers that would have been sent: by name, a list of values each.
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    headers: Headers<'a>,
    /// The body that would have been sent, byte for byte: what the signature is over. Empty where there is none.
    payload: Cow<'a, str>,
    /// `base64` where the bytes of the body are no UTF-8, and `payload` is that of them; otherwise absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    encoding: Option<&'static str>,
    /// The same body, as JSON to read; `null` where there is none.
    #[schemars(with = "Option<serde_json::Value>")]
    body: Option<&'a RawValue>,
}

/// The bytes of a body as a text, and how they are written in it if not as they are.
fn payload(body: &[u8]) -> (Cow<'_, str>, Option<&'static str>) {
    match std::str::from_utf8(body) {
        Ok(text) => (text.into(), None),
        Err(_) => (STANDARD.encode(body).into(), Some("base64")),
    }
}

/// By name, a list of values each: as in a subscription's `endpoint.headers`.
struct Headers<'a>(&'a Request);

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut named: Vec<(&str, Vec<Cow<'_, str>>)> = Vec::new();
        for (name, value) in self.0.fields() {
            let value = String::from_utf8_lossy(value);
            match named.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => named.push((name, vec![value])),
            }
        }
        serializer.collect_map(named)
    }
}

impl JsonSchema for Message {
    fn schema_name() -> Cow<'static, str> {
        View::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        View::json_schema(generator)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (payload, encoding) = payload(self.request.body());
        // The envelope is JSON, and a document that was accepted as such; of a message that is passed on as it is nobody knows.
        let body = match payload.is_empty() || encoding.is_some() {
            true => None,
            false => serde_json::from_str::<&RawValue>(&payload).ok(),
        };
        let view = View {
            id: &self.id,
            document: &self.document,
            action: self.action,
            revision: &self.revision,
            attempt: self.token.attempt,
            lease: self.token.to_string(),
            lease_expires_at: self.token.until,
            headers: Headers(&self.request),
            payload: Cow::Borrowed(&payload),
            encoding,
            body,
        };
        view.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_written_as_it_is_or_in_base64() {
        assert_eq!(payload(b""), ("".into(), None));
        assert_eq!(payload("{\"a\":\n \"\u{df}\"}".as_bytes()), ("{\"a\":\n \"\u{df}\"}".into(), None));
        assert_eq!(payload(&[0xff, 0x00]), ("/wA=".into(), Some("base64")));
    }
}
