//! Where a producer's notifications go, as users write it: the endpoint of a subscription with its statuses, or a sink.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bridge::{KinesisDraft, NatsDraft, RabbitMqDraft, SinkDraft, SqsDraft};
use crate::schema::{METHOD, headers};
use crate::subscription::{ActionsDraft, Draft, EndpointDraft, TlsDraft};

/// Where notifications go.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
#[schemars(rename = "ProducerTargetDraft")]
pub enum TargetDraft {
    /// Over HTTP.
    #[serde(rename = "http")]
    Http(Box<HttpTargetDraft>),
    /// A queue of SQS.
    #[serde(rename = "aws.sqs")]
    Sqs(SqsDraft),
    /// A stream of Kinesis.
    #[serde(rename = "aws.kinesis")]
    Kinesis(KinesisDraft),
    /// An exchange or a queue of RabbitMQ.
    #[serde(rename = "rabbitmq")]
    RabbitMq(RabbitMqDraft),
    /// A subject of NATS JetStream.
    #[serde(rename = "nats")]
    Nats(NatsDraft),
}

/// Over HTTP: the endpoint of a subscription, with what its statuses mean.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HttpTargetDraft {
    /// For every action that has no url of its own. It may use `{id}` and `{revision}`.
    #[schemars(extend("format" = "url-template"))]
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// Statuses that mean delivered; 200 to 299 where none are given.
    #[schemars(length(min = 1), inner(range(min = 100, max = 599)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<Vec<u16>>,
    /// Statuses that mean: drop this notification.
    #[schemars(length(min = 1), inner(range(min = 100, max = 599)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<Vec<u16>>,
}

impl TargetDraft {
    /// Puts it where a draft has it.
    pub(super) fn put_into(self, draft: &mut Draft) {
        draft.sink = Some(Box::new(match self {
            TargetDraft::Http(http) => {
                let HttpTargetDraft { url, method, headers, actions, tls, success, discard } = *http;
                let url = url.map(|url| url.trim().to_owned());
                draft.endpoint = EndpointDraft { url, method, headers, actions, tls };
                (draft.delivery.success, draft.delivery.discard) = (success, discard);
                return;
            }
            TargetDraft::Sqs(sqs) => SinkDraft::Sqs(sqs),
            TargetDraft::Kinesis(kinesis) => SinkDraft::Kinesis(kinesis),
            TargetDraft::RabbitMq(rabbitmq) => SinkDraft::RabbitMq(rabbitmq),
            TargetDraft::Nats(nats) => SinkDraft::Nats(nats),
        }));
    }

    /// What a draft has.
    pub(super) fn of(draft: &Draft) -> TargetDraft {
        match draft.sink.as_deref().cloned() {
            None => {
                let EndpointDraft { url, method, headers, actions, tls } = draft.endpoint.clone();
                let (success, discard) = (draft.delivery.success.clone(), draft.delivery.discard.clone());
                let http = HttpTargetDraft { url, method, headers, actions, tls, success, discard };
                TargetDraft::Http(Box::new(http))
            }
            Some(SinkDraft::Sqs(sqs)) => TargetDraft::Sqs(sqs),
            Some(SinkDraft::Kinesis(kinesis)) => TargetDraft::Kinesis(kinesis),
            Some(SinkDraft::RabbitMq(rabbitmq)) => TargetDraft::RabbitMq(rabbitmq),
            Some(SinkDraft::Nats(nats)) => TargetDraft::Nats(nats),
        }
    }
}
