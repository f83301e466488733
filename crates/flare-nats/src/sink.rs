//! A subject as a sink. Every message is a request that the stream behind the subject answers when it has it; `Nats-Msg-Id` lets the server drop one
//! that it has already, which helps and is not relied upon.

use std::sync::Arc;

use async_nats::header::{HeaderMap, HeaderName, HeaderValue, NATS_MESSAGE_ID};
use async_nats::{Client, RequestErrorKind};
use async_trait::async_trait;
use flare_model::bridge::NatsTarget;
use flare_model::bridge::wording::escape;
use flare_provider::bridge::{Outgoing, Sent, Sink};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::api::ask;
use crate::link::Link;

/// How many go at once.
const MOST: usize = 200;

/// What the server says of messages that are too large for the stream.
const TOO_LARGE: [u64; 2] = [10_054, 10_097];

/// A subject, or one for each document.
pub struct Subject {
    link: Arc<Link>,
    settings: NatsTarget,
}

impl Subject {
    pub fn new(link: Arc<Link>, settings: NatsTarget) -> Subject {
        Subject { link, settings }
    }

    async fn one(&self, client: &Client, outgoing: &Outgoing) -> Sent {
        let subject = self.settings.subject.render(&outgoing.document, &outgoing.revision, escape);
        let headers = match headers(outgoing) {
            Ok(headers) => headers,
            Err(why) => return Sent::Refused(why),
        };
        let answer = client.request_with_headers(subject.clone(), headers, outgoing.body.clone()).await;
        match answer {
            Ok(answer) => stored(&answer.payload),
            Err(error) => match error.kind() {
                RequestErrorKind::NoResponders => nobody(client, &subject).await,
                RequestErrorKind::MaxPayloadExceeded | RequestErrorKind::InvalidSubject => {
                    Sent::Refused(format!("sending to \"{subject}\": {error}"))
                }
                _ => Sent::Unknown(format!("sending to \"{subject}\": {error}")),
            },
        }
    }
}

fn headers(outgoing: &Outgoing) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let value = |name: &str, value: &str| {
        value
            .parse::<HeaderValue>()
            .map_err(|error| format!("the header \"{name}\" cannot be sent by NATS: {error}"))
    };
    headers.insert(NATS_MESSAGE_ID, value("Nats-Msg-Id", &outgoing.id)?);
    if let Some(content_type) = outgoing.content_type {
        headers.insert("content-type", value("content-type", content_type)?);
    }
    for (name, text) in &outgoing.headers {
        let parsed = name.parse::<HeaderName>();
        let parsed =
            parsed.map_err(|error| format!("the header \"{name}\" cannot be sent by NATS: {error}"))?;
        headers.append(parsed, value(name, text)?);
    }
    Ok(headers)
}

/// What the stream answered.
fn stored(answer: &[u8]) -> Sent {
    let Ok(answer) = serde_json::from_slice::<Value>(answer) else {
        return Sent::Unknown("whoever answered is no stream of JetStream".to_owned());
    };
    if let Some(error) = answer.get("error") {
        let words = error["description"].as_str().unwrap_or("the stream did not take it").to_owned();
        return match error["err_code"].as_u64() {
            Some(code) if TOO_LARGE.contains(&code) => Sent::Refused(words),
            _ => Sent::Failed(words),
        };
    }
    match answer["seq"].as_u64() {
        Some(_) => Sent::Delivered,
        None => Sent::Unknown("whoever answered is no stream of JetStream".to_owned()),
    }
}

/// Nobody took it: because no stream has this subject, or because the one that has is between two leaders.
async fn nobody(client: &Client, subject: &str) -> Sent {
    match ask(client, "STREAM.NAMES", &json!({"subject": subject})).await {
        Ok(found) if found["streams"].as_array().is_none_or(Vec::is_empty) => {
            Sent::Refused(format!("no stream has the subject \"{subject}\""))
        }
        Ok(_) => Sent::Failed(format!("the stream of \"{subject}\" takes nothing at the moment")),
        Err(error) => Sent::Failed(format!("no stream answers for \"{subject}\": {error:?}")),
    }
}

#[async_trait]
impl Sink for Subject {
    fn most(&self) -> usize {
        MOST
    }

    async fn send(&self, batch: Vec<Outgoing>) -> Vec<Sent> {
        let client = match self.link.client().await {
            Ok(client) => client,
            Err(error) => return vec![Sent::Failed(error.detail); batch.len()],
        };
        join_all(batch.iter().map(|outgoing| self.one(&client, outgoing))).await
    }
}
