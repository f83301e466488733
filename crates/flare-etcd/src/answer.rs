//! What etcd answers, as far as it is read. Everything may be missing: zero, empty and false are not written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};

/// Bytes as the gateway has them.
pub fn encoded(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

fn signed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
    STANDARD.decode(text.as_bytes()).map_err(serde::de::Error::custom)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Header {
    #[serde(deserialize_with = "number")]
    pub revision: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct KeyValue {
    #[serde(deserialize_with = "bytes")]
    pub key: Vec<u8>,
    #[serde(deserialize_with = "bytes")]
    pub value: Vec<u8>,
    #[serde(deserialize_with = "number")]
    pub mod_revision: u64,
    #[serde(deserialize_with = "number")]
    pub lease: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Ranged {
    pub header: Header,
    pub kvs: Vec<KeyValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Transacted {
    pub header: Header,
    pub succeeded: bool,
    pub responses: Vec<Response>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Response {
    pub response_range: Option<Ranged>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Granted {
    #[serde(rename = "ID", deserialize_with = "number")]
    pub id: u64,
    #[serde(rename = "TTL", deserialize_with = "number")]
    pub ttl: u64,
}

/// How long a lease lasts yet.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Left {
    #[serde(rename = "TTL", deserialize_with = "signed")]
    pub ttl: i64,
    #[serde(rename = "grantedTTL", deserialize_with = "signed")]
    pub granted: i64,
}

/// An element of a stream.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Streamed<T> {
    Result(T),
    Error(serde_json::Value),
}

/// Lease not found is answered with a TTL below 1, which the gateway leaves out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct KeptAlive {
    #[serde(rename = "TTL")]
    pub ttl: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Watched {
    pub header: Header,
    pub created: bool,
    pub canceled: bool,
    #[serde(deserialize_with = "number")]
    pub compact_revision: u64,
    pub cancel_reason: String,
    pub events: Vec<Event>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event {
    pub kv: KeyValue,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Authenticated {
    pub token: String,
}

/// An error of etcd's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Refused {
    pub error: String,
    pub message: String,
    pub code: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_nothing() {
        let text = r#"{"header":{"revision":"2"},"responses":[{"response_range":{"kvs":[{"key":"YQ==","mod_revision":"18446744073709551615"}]}}]}"#;
        let read: Transacted = serde_json::from_str(text).unwrap();
        assert!(!read.succeeded && read.header.revision == 2);
        let found = &read.responses[0].response_range.as_ref().unwrap().kvs[0];
        assert_eq!((found.key.as_slice(), found.mod_revision, found.lease), (&b"a"[..], u64::MAX, 0));
        let empty: Watched = serde_json::from_str("{}").unwrap();
        assert!(!empty.canceled && empty.events.is_empty());
    }
}
