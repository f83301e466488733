//! A producer: to a consumer what a subscription is to a resource. The JSON of the API comes in and becomes the [`Draft`] of a
//! subscription, which is what is stored, checked and served; the same goes out again in the words of producers.

mod target;
mod words;

pub use target::{HttpTargetDraft, TargetDraft};
pub use words::in_words_of_producers;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::HumanDuration;
use crate::ids::{ResourceId, SubscriptionId};
use crate::invalid::Invalid;
use crate::retry::RetryDraft;
use crate::subscription::{
    ContentDraft, DataValue, DeliveryDraft, Draft, Lowered, Mode, RateLimit, Secret, SecretView, Start,
    Status, View, reveal,
};
use crate::time::Timestamp;

/// A producer as a user writes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProducerDraft {
    /// Where notifications go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetDraft>,
    /// How they are delivered.
    pub delivery: ProducerDeliveryDraft,
    /// What they contain.
    pub content: ContentDraft,
    /// Values of one's own in the envelope.
    #[schemars(extend("maxProperties" = 64))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, DataValue>,
    /// Membership, a CEL expression over `document`, `revision` and `wildcards`: which documents the target is to have.
    #[schemars(length(max = 2048), extend("format" = "cel"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Whether to tell, a CEL expression that also sees `action` and `state`.
    #[schemars(length(max = 2048), extend("format" = "cel"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// How old a change may be when its turn comes, from when it was accepted; what is older is a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<HumanDuration>,
    /// Whether it is served without being asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Where it starts; cannot be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// How many owners may serve it in parallel; at most the consumer's lanes, the concurrency and the rate's quantity.
    #[schemars(range(min = 1, max = 256))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shards: Option<u32>,
    /// The key that signs. It is never written out with the rest: it is kept apart, sealed.
    #[serde(skip_serializing)]
    pub secret: Option<Secret>,
}

/// How notifications of a producer are delivered. Which statuses mean what is part of a target that has such.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProducerDeliveryDraft {
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

impl ProducerDraft {
    /// As it is stored and served.
    pub fn into_draft(self) -> Result<Draft, Invalid> {
        let ProducerDeliveryDraft { timeout, concurrency, rate_limit, retry, revision } = self.delivery;
        let delivery =
            DeliveryDraft { timeout, concurrency, rate_limit, retry, revision, ..DeliveryDraft::default() };
        let mut draft = Draft {
            delivery,
            content: self.content,
            data: self.metadata,
            filter: self.filter,
            when: self.when,
            mode: self.mode,
            start: self.start,
            shards: self.shards,
            ttl: self.ttl,
            secret: self.secret,
            ..Draft::default()
        };
        let target = self.target.ok_or_else(|| {
            Invalid::new(
                "target",
                "is required: an object with the type http, aws.sqs, aws.kinesis, rabbitmq or nats",
            )
        })?;
        target.put_into(&mut draft);
        Ok(draft)
    }

    /// What was stored, in the words of producers.
    pub fn of(draft: Draft) -> ProducerDraft {
        let target = Some(TargetDraft::of(&draft));
        let DeliveryDraft { timeout, concurrency, rate_limit, retry, revision, .. } = draft.delivery;
        ProducerDraft {
            target,
            delivery: ProducerDeliveryDraft { timeout, concurrency, rate_limit, retry, revision },
            content: draft.content,
            metadata: draft.data,
            filter: draft.filter,
            when: draft.when,
            ttl: draft.ttl,
            mode: draft.mode,
            start: draft.start,
            shards: draft.shards,
            secret: draft.secret,
        }
    }
}

/// A producer as users see it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Producer")]
pub struct ProducerView {
    /// Its id.
    pub id: SubscriptionId,
    /// The consumer.
    pub consumer: ResourceId,
    /// What was said, with every default filled in.
    #[serde(flatten)]
    pub draft: ProducerDraft,
    /// Whether it works.
    pub status: Status,
    /// Since when that is so.
    pub since: Timestamp,
    /// Why it is so, where there is something to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Values that the configuration does not allow any more: shown above, and in force, is what it does allow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lowered: Vec<Lowered>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed by a user.
    pub updated_at: Timestamp,
    /// What signs now, oldest first, without the values.
    pub secrets: Vec<SecretView>,
    /// The value of the newest secret: only in the answer that made it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "reveal")]
    #[schemars(with = "Option<Secret>")]
    pub secret: Option<Secret>,
}

impl From<View> for ProducerView {
    fn from(view: View) -> ProducerView {
        ProducerView {
            id: view.id,
            consumer: view.resource,
            draft: ProducerDraft::of(view.draft),
            status: view.status,
            since: view.since,
            reason: view.reason,
            lowered: view.lowered,
            created_at: view.created_at,
            updated_at: view.updated_at,
            secrets: view.secrets,
            secret: view.secret,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::ConsumerDraft;
    use crate::ids::ResourceNumber;
    use crate::resource::Resource;
    use crate::subscription::{Limits, Revisions, check};
    use serde_json::{Value, json};

    #[test]
    fn what_is_stored_comes_back_as_it_was_written() {
        let http = json!({"type": "http", "url": "http://c/{id}", "method": "put", "headers": {"a": ["b"]},
            "actions": {"delete": {"method": "delete"}}, "success": [200], "discard": [410]});
        for target in [
            http,
            json!({"type": "aws.sqs", "queue": "orders"}),
            json!({"type": "aws.kinesis", "stream": "orders"}),
            json!({"type": "rabbitmq", "exchange": "out", "routingKey": "orders.{id}", "persistent": false}),
            json!({"type": "nats", "subject": "orders.{id}"}),
        ] {
            let whole = json!({
                "target": target, "content": {"envelope": true, "document": true},
                "metadata": {"service": "orders"}, "filter": "document.total > 0", "when": "true",
                "delivery": {"concurrency": 10, "timeout": "15s", "revision": "last"},
                "ttl": "24h", "mode": "active", "start": "now", "shards": 1,
            });
            let draft: ProducerDraft = serde_json::from_value(whole.clone()).expect("a draft");
            let stored = serde_json::to_value(draft.into_draft().expect("a target")).expect("plain data");
            let again = ProducerDraft::of(serde_json::from_value(stored).expect("a draft again"));
            assert_eq!(serde_json::to_value(again).expect("plain data"), whole);
        }
    }

    #[test]
    fn of_messages_that_are_passed_on_as_they_are_every_one_is() {
        let consumer: ConsumerDraft = serde_json::from_value(
            json!({"source": {"type": "rabbitmq", "queue": "in"}, "payload": {"format": "raw"}}),
        )
        .expect("a consumer");
        let id = ResourceId::new("con_1");
        let settings = consumer.check(&id).expect("it is right");
        let resource = Resource::of_consumer(id, ResourceNumber(1), settings, 8, Timestamp::from_millis(0));
        let checked = |revision: Value| {
            let draft: ProducerDraft = serde_json::from_value(json!({
                "target": {"type": "nats", "subject": "out"}, "delivery": {"revision": revision},
            }))
            .expect("a draft");
            check(&draft.into_draft().expect("a target"), &resource, &Limits::none())
        };
        assert_eq!(checked(json!(null)).expect("every one by default").revisions, Revisions::All);
        assert_eq!(checked(json!("all")).expect("every one").revisions, Revisions::All);
        assert_eq!(checked(json!("last")).expect_err("none may be left out").field, "delivery.revision");
    }

    #[test]
    fn unknown_fields_and_types_are_named() {
        let problem =
            |json: Value| serde_json::from_value::<ProducerDraft>(json).expect_err("unknown").to_string();
        assert!(problem(json!({"endpoint": {}})).contains("endpoint"));
        assert!(problem(json!({"target": {"type": "http", "url": "http://c/", "uri": "x"}})).contains("uri"));
        assert!(problem(json!({"target": {"type": "nats", "subject": "a", "queue": "x"}})).contains("queue"));
        assert!(problem(json!({"target": {"type": "kafka"}})).contains("kafka"));
        assert!(problem(json!({"delivery": {"success": [200]}})).contains("success"));
        assert_eq!(ProducerDraft::default().into_draft().expect_err("no target").field, "target");
    }
}
