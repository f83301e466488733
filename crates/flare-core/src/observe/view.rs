//! Attempts as users see them: an entry comes in, JSON goes out.

use flare_model::cluster::NodeId;
use std::collections::BTreeMap;
use std::time::Duration;

use flare_model::duration::HumanDuration;
use flare_model::feed::Action;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::attempt::{Entry, Exchange, Outcome, Spans};
use super::redact;
use crate::notification::compiled::Compiled;
use crate::notification::ids::replay_id;

/// One attempt in a list, or live.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    /// Its id.
    pub id: String,
    /// The resource.
    pub resource: ResourceId,
    /// Who was told.
    pub subscription: SubscriptionId,
    /// About what.
    pub document: String,
    /// What was told.
    pub action: Action,
    /// In which revision.
    pub revision: Revision,
    /// Which attempt for this revision, from 1.
    pub attempt: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The answer's status.
    pub status: Option<u16>,
    /// What went wrong where there was no answer.
    pub error: Option<String>,
    /// When it began.
    pub began_at: Timestamp,
    /// How long its parts took.
    pub timing: Timing,
    /// The notification's id.
    pub webhook_id: String,
    /// The replay that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// Who sent it.
    pub node: NodeId,
}

/// How long the parts took, from the beginning of the attempt.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// From the acceptance of the change to the attempt; of a first attempt only.
    pub queued: Option<HumanDuration>,
    /// How long connecting took; nothing where an open connection was used.
    pub connect: Option<HumanDuration>,
    /// Until the head of the answer was there.
    pub first_byte: Option<HumanDuration>,
    /// Until the end of the answer.
    pub total: HumanDuration,
}

/// One attempt, whole.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptDetail {
    /// What the list says.
    #[serde(flatten)]
    pub view: AttemptView,
    /// What was sent.
    pub request: RequestView,
    /// What came back, where anything did.
    pub response: Option<ResponseView>,
}

/// What was sent.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestView {
    /// The method.
    pub method: String,
    /// Where it went.
    pub url: String,
    /// Nothing where only the compact entry was kept.
    #[schemars(with = "Option<BTreeMap<String, Vec<String>>>")]
    pub headers: Option<Headers>,
    /// The beginning of the body.
    pub body: Option<String>,
    /// How long the whole body is.
    pub body_bytes: Option<usize>,
}

/// What came back.
#[derive(Serialize, JsonSchema)]
pub struct ResponseView {
    /// The status.
    pub status: u16,
    /// Nothing where only the compact entry was kept.
    #[schemars(with = "Option<BTreeMap<String, Vec<String>>>")]
    pub headers: Option<Headers>,
    /// The beginning of the body.
    pub body: Option<String>,
}

/// Headers as an object; the values of one name in a list.
pub struct Headers(pub Vec<(String, String)>);

impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for group in self.0.chunk_by(|a, b| a.0 == b.0) {
            let values: Vec<&str> = group.iter().map(|(_, value)| value.as_str()).collect();
            map.serialize_entry(&group[0].0, &values)?;
        }
        map.end()
    }
}

impl Timing {
    /// Of these parts; `queued` where it is known.
    pub fn new(spans: Spans, queued: Option<Duration>) -> Timing {
        Timing {
            queued: queued.map(HumanDuration),
            connect: spans.connect().map(HumanDuration),
            first_byte: spans.first_byte().map(HumanDuration),
            total: HumanDuration(spans.total()),
        }
    }
}

impl AttemptView {
    /// What the list says of an attempt.
    pub fn new(entry: &Entry, node: &NodeId) -> AttemptView {
        let first = entry.attempts == 0 && entry.replay == 0;
        AttemptView {
            id: entry.id.to_string(),
            resource: entry.compiled.resource.id().clone(),
            subscription: entry.compiled.id.clone(),
            document: entry.url.to_string(),
            action: entry.action,
            revision: entry.revision.clone(),
            attempt: entry.attempts.saturating_add(1),
            outcome: entry.outcome,
            status: entry.status,
            error: entry.exchange.as_ref().and_then(|exchange| exchange.error.clone()),
            began_at: entry.began,
            timing: Timing::new(entry.spans, first.then(|| entry.began.since(entry.updated_at))),
            webhook_id: entry.webhook_id(),
            replay: (entry.replay != 0).then(|| replay_id(entry.replay)),
            node: node.clone(),
        }
    }
}

impl AttemptDetail {
    /// All that is known of an attempt.
    pub fn new(entry: &Entry, node: &NodeId) -> AttemptDetail {
        let exchange = entry.exchange.as_deref();
        AttemptDetail {
            view: AttemptView::new(entry, node),
            request: RequestView::new(&entry.compiled, entry.action, &entry.url, &entry.revision, exchange),
            response: entry.status.map(|status| ResponseView::new(status, exchange)),
        }
    }
}

impl RequestView {
    /// The request of an action about a document, with what was kept of it.
    pub fn new(
        compiled: &Compiled,
        action: Action,
        url: &str,
        revision: &Revision,
        kept: Option<&Exchange>,
    ) -> RequestView {
        let (method, url) = match compiled.spec.target(action) {
            None => ("SEND", compiled.requests[action as usize].to.to_string()),
            Some(target) => {
                let mut path = String::new();
                let name = compiled.resource.name(url, revision);
                target.url.render_path(&compiled.resource.values(name), &revision.to_string(), &mut path);
                let scheme = if target.url.https() { "https" } else { "http" };
                let authority = target.url.authority();
                (target.method, format!("{scheme}://{authority}{}", redact::path_and_query(&path)))
            }
        };
        RequestView {
            method: method.to_owned(),
            url,
            headers: kept.map(|kept| Headers(kept.headers.clone())),
            body: kept.map(|kept| String::from_utf8_lossy(&kept.body).into_owned()),
            body_bytes: kept.map(|kept| kept.body_bytes),
        }
    }
}

impl ResponseView {
    /// An answer, with what was kept of it.
    pub fn new(status: u16, kept: Option<&Exchange>) -> ResponseView {
        ResponseView {
            status,
            headers: kept.map(|kept| Headers(kept.answer_headers.clone())),
            body: kept.map(|kept| String::from_utf8_lossy(&kept.answer).into_owned()),
        }
    }
}
