//! An exchange, or a queue by the one without a name, as a sink: every message is confirmed by the broker, and one that leads to no queue comes back.
//!
//! The client hands a returned message to whichever confirmation comes next on the channel, so a channel is one call's at a time, and
//! returned messages are known by their id.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use flare_model::bridge::RabbitMqTarget;
use flare_model::bridge::wording::escape;
use flare_provider::bridge::{BridgeErrorKind, BridgeResult, Outgoing, Sent, Sink};
use futures_util::future::join_all;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, ErrorKind};
use parking_lot::Mutex;

use crate::error::{bridge_error, kind};
use crate::link::{Link, short};

/// How many go at once.
const MOST: usize = 500;

/// Channels that are kept for the next calls. When full: a channel that is done with is closed.
const KEPT: usize = 16;

/// Written to disk by the broker, or not.
const PERSISTENT: u8 = 2;
const TRANSIENT: u8 = 1;

/// An exchange.
pub struct Exchange {
    link: Arc<Link>,
    settings: RabbitMqTarget,
    idle: Mutex<Vec<Channel>>,
}

/// Why one was not confirmed.
enum Unconfirmed {
    /// It was never sent.
    Unsent(Sent),
    /// By the client's error.
    Error(lapin::Error),
}

impl Exchange {
    pub fn new(link: Arc<Link>, settings: RabbitMqTarget) -> Exchange {
        Exchange { link, settings, idle: Mutex::default() }
    }

    async fn channel(&self) -> BridgeResult<Channel> {
        loop {
            let Some(channel) = self.idle.lock().pop() else { break };
            if channel.status().connected() {
                return Ok(channel);
            }
        }
        let channel = self.link.channel().await?;
        let confirms = async {
            let selected = channel.confirm_select(ConfirmSelectOptions::default()).await;
            selected.map_err(|error| {
                bridge_error(error, BridgeErrorKind::Unavailable, "asking for confirmations")
            })
        };
        self.link.soon(confirms).await?;
        Ok(channel)
    }

    async fn publish(&self, channel: &Channel, outgoing: &Outgoing) -> Result<Confirmation, Unconfirmed> {
        let key = self.settings.routing_key.render(&outgoing.document, &outgoing.revision, escape);
        let refused =
            |error: flare_provider::bridge::BridgeError| Unconfirmed::Unsent(Sent::Refused(error.detail));
        let exchange = short(&self.settings.exchange).map_err(refused)?;
        let key = short(&key).map_err(refused)?;
        let mut headers = FieldTable::default();
        for (name, value) in &outgoing.headers {
            let name = short(name).map_err(refused)?;
            headers.insert(name, AMQPValue::LongString(value.as_str().into()));
        }
        let mut properties = BasicProperties::default()
            .with_message_id(short(&outgoing.id).map_err(refused)?)
            .with_delivery_mode(if self.settings.persistent { PERSISTENT } else { TRANSIENT })
            .with_headers(headers);
        if let Some(content_type) = outgoing.content_type {
            properties = properties.with_content_type(content_type.into());
        }
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        let confirm = channel.basic_publish(exchange, key, options, &outgoing.body, properties).await;
        confirm.map_err(Unconfirmed::Error)?.await.map_err(Unconfirmed::Error)
    }

    fn judge(&self, confirmed: Result<Confirmation, Unconfirmed>, returned: Option<&String>) -> Sent {
        match confirmed {
            Ok(_) if returned.is_some() => {
                let why = returned.map(String::as_str).unwrap_or_default();
                Sent::Refused(format!("no queue takes it: {why}"))
            }
            Ok(Confirmation::Ack(_)) => Sent::Delivered,
            Ok(Confirmation::Nack(_)) => Sent::Failed("the broker could not take it".to_owned()),
            Ok(Confirmation::NotRequested) => Sent::Unknown("the broker was not asked to confirm".to_owned()),
            Err(Unconfirmed::Unsent(sent)) => sent,
            Err(Unconfirmed::Error(error)) => {
                let words = format!("sending to RabbitMQ: {error}");
                match (kind(&error, BridgeErrorKind::Broken), error.kind()) {
                    (BridgeErrorKind::Missing | BridgeErrorKind::Refused, _) => Sent::Refused(words),
                    // The channel was over before this one went out.
                    (_, ErrorKind::InvalidChannelState(..) | ErrorKind::InvalidConnectionState(_)) => {
                        Sent::Failed(words)
                    }
                    _ => Sent::Unknown(words),
                }
            }
        }
    }
}

#[async_trait]
impl Sink for Exchange {
    fn most(&self) -> usize {
        MOST
    }

    async fn send(&self, batch: Vec<Outgoing>) -> Vec<Sent> {
        let failed = |why: &str| vec![Sent::Failed(why.to_owned()); batch.len()];
        // What is handed over now would wait in this process, and nobody could say whether it was taken; nor would a channel be opened.
        if self.link.is_blocked().await {
            return failed("the broker is short of memory or disk and asks to wait");
        }
        let channel = match self.channel().await {
            Ok(channel) => channel,
            Err(error) => return failed(&error.detail),
        };
        let confirmed = join_all(batch.iter().map(|outgoing| self.publish(&channel, outgoing))).await;
        let mut returned: HashMap<String, String> = HashMap::new();
        for message in confirmed.iter().filter_map(|confirmed| confirmed.as_ref().ok()).filter_map(message) {
            let id = message.properties.message_id().as_ref().map(|id| id.as_str().to_owned());
            returned.insert(id.unwrap_or_default(), message.reply_text.as_str().to_owned());
        }
        let whole = confirmed.iter().all(|confirmed| !matches!(confirmed, Err(Unconfirmed::Error(_))));
        if whole && channel.status().connected() {
            let mut idle = self.idle.lock();
            if idle.len() < KEPT {
                idle.push(channel);
            }
        }
        let outcomes = batch.iter().zip(confirmed);
        outcomes.map(|(outgoing, confirmed)| self.judge(confirmed, returned.get(&outgoing.id))).collect()
    }
}

fn message(confirmation: &Confirmation) -> Option<&lapin::message::BasicReturnMessage> {
    match confirmation {
        Confirmation::Ack(message) | Confirmation::Nack(message) => message.as_ref(),
        Confirmation::NotRequested => None,
    }
}
