//! The JSON of a subscription, as users write it. Everything is optional here; `check.rs` says what is not.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{ContentDraft, Mode, Secret, Start};
use crate::bridge::SinkDraft;
use crate::duration::HumanDuration;
use crate::retry::RetryDraft;
use crate::schema::{METHOD, headers};

/// A subscription as a user writes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "SubscriptionDraft")]
pub struct Draft {
    /// Where notifications go.
    pub endpoint: EndpointDraft,
    /// How they are delivered.
    pub delivery: DeliveryDraft,
    /// What they contain.
    pub content: ContentDraft,
    /// Values of one's own in the envelope.
    #[schemars(extend("maxProperties" = 64))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, DataValue>,
    /// Membership, a CEL expression over `document`, `revision` and `wildcards`: which documents this client is to have.
    #[schemars(length(max = 2048), extend("format" = "cel"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Whether to tell, a CEL expression that also sees `action` and `state`.
    #[schemars(length(max = 2048), extend("format" = "cel"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Whether it is served without being asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Where it starts; cannot be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// How many owners may serve it in parallel; at most the resource's lanes, the concurrency and the rate's quantity.
    #[schemars(range(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<u32>,
    /// Where a producer's notifications go, if not over HTTP. Subscriptions have an endpoint.
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sink: Option<Box<SinkDraft>>,
    /// How old a change may be when its turn comes, for producers.
    #[schemars(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<HumanDuration>,
    /// The key that signs. It is never written out with the rest: it is kept apart, sealed.
    #[serde(skip_serializing)]
    pub secret: Option<Secret>,
}

/// Where notifications go.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EndpointDraft {
    /// For every action that has no url of its own. It may use the resource's wildcards and `{revision}`.
    #[schemars(extend("format" = "url-template"))]
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "trimmed")]
    pub url: Option<String>,
    /// For every action that has no method of its own.
    #[schemars(regex(pattern = METHOD))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Sent with every action, unless the action has one of the same name.
    #[schemars(schema_with = "headers")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// What differs by action.
    #[serde(skip_serializing_if = "ActionsDraft::is_empty")]
    pub actions: ActionsDraft,
    /// What Flare shows of itself to https clients that ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Box<TlsDraft>>,
}

/// A certificate of Flare's own, for clients that ask for one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "ClientCertificateDraft")]
pub struct TlsDraft {
    /// The certificate, as PEM, with those that lead to its authority.
    #[schemars(length(max = 65_536))]
    pub certificate: String,
    /// Its private key, as PEM. It is kept sealed and never shown.
    #[schemars(length(max = 65_536))]
    pub key: String,
}

/// What differs by action. Most subscriptions have nothing here, and there are many: it takes room only where it is
/// used.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ActionsDraft {
    /// For creates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<Box<ActionDraft>>,
    /// For updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<Box<ActionDraft>>,
    /// For deletes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<Box<ActionDraft>>,
}

impl ActionsDraft {
    pub(crate) fn is_empty(&self) -> bool {
        self.create.is_none() && self.update.is_none() && self.delete.is_none()
    }
}

/// What one action has of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "TargetDraft")]
pub struct ActionDraft {
    /// Its url.
    #[schemars(extend("format" = "url-template"))]
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "trimmed")]
    pub url: Option<String>,
    /// Its method.
    #[schemars(regex(pattern = METHOD))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Its headers.
    #[schemars(schema_with = "headers")]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
}

/// How notifications are delivered.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DeliveryDraft {
    /// Statuses that mean delivered; 200 to 299 where none are given.
    #[schemars(length(min = 1), inner(range(min = 100, max = 599)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<Vec<u16>>,
    /// Statuses that mean: drop this notification.
    #[schemars(length(min = 1), inner(range(min = 100, max = 599)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<Vec<u16>>,
    /// How long an attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<HumanDuration>,
    /// How many attempts may be open at once.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How many attempts may begin in a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    /// What happens after a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<RetryDraft>>,
    /// `last`: coalesced to the newest. `all`: every accepted revision, in order, as long as it is kept.
    #[schemars(extend("enum" = ["last", "all", null]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// How many attempts may begin in a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "RateLimitDraft")]
pub struct RateLimit {
    /// So many.
    #[schemars(range(min = 1))]
    pub quantity: u32,
    /// In this time: from 1ms to 24h.
    pub interval: HumanDuration,
    /// How many may begin at once after a rest: from 1 to the quantity. Where it is not given: a tenth of the
    /// quantity, or one and as many as come in 10ms where that is more.
    #[schemars(range(min = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

impl RateLimit {
    /// How many may begin at once after a rest: as given, or a tenth of the quantity, so that even the second that
    /// follows a rest stays near the rate. But no less than one, and what comes in the time that a busy machine may be
    /// late by: what a bucket cannot hold is lost, and of a short interval that would be much.
    pub fn burst(&self) -> f64 {
        const LATE: Duration = Duration::from_millis(10);
        let quantity = f64::from(self.quantity);
        let meanwhile = quantity * LATE.as_secs_f64() / self.interval.0.as_secs_f64();
        self.burst.map_or_else(|| (quantity / 10.0).floor().max(1.0 + meanwhile), f64::from)
    }
}

/// A url without the blanks around it, which come from copying, and with an international host in its `xn--` form, as it
/// is asked for.
fn trimmed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let given = Option::<String>::deserialize(deserializer)?;
    Ok(given.map(|url| {
        let url = if url.trim().len() == url.len() { url } else { url.trim().to_owned() };
        crate::url::with_ascii_host(&url).unwrap_or(url)
    }))
}

/// A value of `data`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DataValue {
    /// One value.
    One(Scalar),
    /// A flat list.
    Many(Vec<Scalar>),
}

/// A string, number or boolean.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// True or false.
    Boolean(bool),
    /// Any JSON number, as it was written: there are more of them than any type here can hold.
    #[schemars(with = "serde_json::Number")]
    Number(Box<RawValue>),
    /// May use wildcards.
    Text(String),
}

/// By hand, because what chooses between alternatives does not keep how a number was written.
impl<'de> Deserialize<'de> for DataValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DataValue, D::Error> {
        let given = Box::<RawValue>::deserialize(deserializer)?;
        if !given.get().starts_with('[') {
            return scalar(given).map(DataValue::One);
        }
        let list: Vec<Box<RawValue>> = serde_json::from_str(given.get()).map_err(D::Error::custom)?;
        list.into_iter().map(scalar).collect::<Result<_, _>>().map(DataValue::Many)
    }
}

fn scalar<E: Error>(given: Box<RawValue>) -> Result<Scalar, E> {
    match given.get().as_bytes() {
        [b'"', ..] => serde_json::from_str(given.get()).map(Scalar::Text).map_err(E::custom),
        b"true" => Ok(Scalar::Boolean(true)),
        b"false" => Ok(Scalar::Boolean(false)),
        [b'-' | b'0'..=b'9', ..] => Ok(Scalar::Number(given)),
        _ => Err(E::custom("must be a string, a number, a boolean, or a list of these")),
    }
}
