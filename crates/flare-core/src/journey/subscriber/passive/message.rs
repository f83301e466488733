//! A notification that a client takes away itself: what would have been sent, as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use flare_model::feed::Action;
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use http::HeaderMap;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::{Error, SerializeMap};
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
    /// The headers that would have been sent.
    pub headers: HeaderMap,
    /// The body that would have been sent.
    pub body: Bytes,
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
    /// The body that would have been sent; `null` where there is none.
    #[schemars(with = "Option<serde_json::Value>")]
    body: Option<&'a RawValue>,
}

/// By name, a list of values each: as in a subscription's `endpoint.headers`.
struct Headers<'a>(&'a HeaderMap);

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.keys_len()))?;
        for name in self.0.keys() {
            let values = self.0.get_all(name).iter();
            let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
            map.serialize_entry(name.as_str(), &values)?;
        }
        map.end()
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
        // Every body is JSON: the envelope, or the document, which was accepted as such.
        let body = match self.body.is_empty() {
            true => None,
            false => Some(serde_json::from_slice::<&RawValue>(&self.body).map_err(S::Error::custom)?),
        };
        let view = View {
            id: &self.id,
            document: &self.document,
            action: self.action,
            revision: &self.revision,
            attempt: self.token.attempt,
            lease: self.token.to_string(),
            lease_expires_at: self.token.until,
            headers: Headers(&self.headers),
            body,
        };
        view.serialize(serializer)
    }
}
