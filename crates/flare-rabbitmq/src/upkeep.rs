//! What Flare makes on a broker and takes away again: queues that consumers need, known again by their mark.
//!
//! AMQP lists no queues, so the names of those that were made are kept in a queue; and it says nothing of a queue's arguments, but refuses to
//! declare one that is there with others. So a queue is ours if its name is kept, and declaring it once more as ours is not refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use flare_model::bridge::{self, RabbitMqSource};
use flare_provider::bridge::{BridgeError, BridgeErrorKind, BridgeResult};
use flare_provider::upkeep::{Action, Change};
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions,
    QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, ExchangeKind};

use crate::error::bridge_error;
use crate::link::{Link, short};

/// Names that are read at the most. When full: the rest is left for the next time.
const MOST_NAMES: usize = 10_000;

fn unavailable(what: &'static str) -> impl Fn(lapin::Error) -> BridgeError {
    move |error| bridge_error(error, BridgeErrorKind::Unavailable, what)
}

fn ours(sources: &[(String, bridge::Source)]) -> impl Iterator<Item = (&str, &RabbitMqSource)> {
    sources.iter().filter_map(|(consumer, source)| match source {
        bridge::Source::RabbitMq(settings) => Some((consumer.as_str(), settings)),
        _ => None,
    })
}

/// What these consumers need and may be made, exchanges before what is bound to them.
pub async fn missing(link: &Link, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
    let mut changes: Vec<Change> = Vec::new();
    for (consumer, settings) in ours(sources).filter(|(_, settings)| settings.create) {
        if let Some(exchange) = &settings.exchange
            && is_missing(has_exchange(link, exchange).await)?
            && !changes.iter().any(|change| change.name == *exchange)
        {
            let detail =
                format!("a durable topic exchange, from which consumer {consumer} gets its messages");
            changes.push(Change { action: Action::Create, kind: "exchange", name: exchange.clone(), detail });
        }
        if is_missing(link.waiting(&settings.queue).await.map(drop))? {
            let detail = format!("a durable quorum queue for consumer {consumer}");
            changes.push(Change {
                action: Action::Create,
                kind: "queue",
                name: settings.queue.clone(),
                detail,
            });
        }
    }
    Ok(changes)
}

fn is_missing(found: BridgeResult<()>) -> BridgeResult<bool> {
    match found {
        Ok(()) => Ok(false),
        Err(error) if error.kind == BridgeErrorKind::Missing => Ok(true),
        Err(error) => Err(error),
    }
}

async fn has_exchange(link: &Link, exchange: &str) -> BridgeResult<()> {
    let channel = link.channel().await?;
    let passive = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
    let asked = async {
        let declared =
            channel.exchange_declare(short(exchange)?, ExchangeKind::Topic, passive, FieldTable::default());
        declared.await.map_err(unavailable("looking at the exchange"))
    };
    link.soon(asked).await
}

/// What was made for this owner and no consumer reads.
pub async fn left_over(
    link: &Link,
    owner: &str,
    sources: &[(String, bridge::Source)],
) -> BridgeResult<Vec<Change>> {
    let used: BTreeSet<&str> = ours(sources).map(|(_, settings)| settings.queue.as_str()).collect();
    let mut changes = Vec::new();
    for name in names(link, owner).await? {
        if !used.contains(name.as_str()) && is_marked(link, owner, &name).await? {
            let detail = format!("made for \"{owner}\", and no consumer reads it");
            changes.push(Change { action: Action::Delete, kind: "queue", name, detail });
        }
    }
    Ok(changes)
}

/// Does one change of a plan.
pub async fn apply(
    link: &Link,
    owner: &Arc<str>,
    sources: &[(String, bridge::Source)],
    change: &Change,
) -> BridgeResult<()> {
    match (change.action, change.kind) {
        (Action::Create, "exchange") => {
            let channel = link.channel().await?;
            let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
            let name = short(&change.name)?;
            let made = channel.exchange_declare(name, ExchangeKind::Topic, durable, FieldTable::default());
            link.soon(async { made.await.map_err(unavailable("making the exchange")) }).await
        }
        (Action::Create, "queue") => {
            let settings = ours(sources).map(|(_, settings)| settings).find(|one| one.queue == change.name);
            create(link, owner, &change.name, settings).await
        }
        (Action::Delete, "queue") => delete(link, owner, &change.name).await,
        _ => {
            let words = format!("RabbitMQ has no {} to change", change.kind);
            Err(BridgeError::new(BridgeErrorKind::Refused, words))
        }
    }
}

fn kept_names(owner: &str) -> String {
    format!("flare.{owner}.queues")
}

fn lost(owner: &str) -> String {
    format!("flare.{owner}.lost")
}

fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    arguments
}

/// A quorum queue; what the broker itself gives up (some do after so many deliveries) is kept, and where that leads is the mark.
fn marked(owner: &str) -> FieldTable {
    let mut arguments = quorum();
    arguments.insert("x-dead-letter-exchange".into(), AMQPValue::LongString("".into()));
    arguments.insert("x-dead-letter-routing-key".into(), AMQPValue::LongString(lost(owner).into()));
    arguments
}

async fn declare(channel: &Channel, name: &str, arguments: FieldTable) -> BridgeResult<()> {
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let declared = channel.queue_declare(short(name)?, durable, arguments).await;
    declared.map(drop).map_err(unavailable("making the queue"))
}

async fn create(link: &Link, owner: &str, name: &str, settings: Option<&RabbitMqSource>) -> BridgeResult<()> {
    let channel = link.channel().await?;
    let made = async {
        declare(&channel, &lost(owner), quorum()).await?;
        declare(&channel, &kept_names(owner), quorum()).await?;
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .map_err(unavailable("keeping the name"))?;
        // The name first: a queue that nobody would know again must not be left by a crash.
        let properties = BasicProperties::default().with_delivery_mode(2);
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        let kept = channel.basic_publish(
            "".into(),
            short(&kept_names(owner))?,
            options,
            name.as_bytes(),
            properties,
        );
        let kept = kept.await.map_err(unavailable("keeping the name"))?;
        let kept = kept.await.map_err(unavailable("keeping the name"))?;
        if !kept.is_ack() || kept.take_message().is_some() {
            return Err(BridgeError::new(BridgeErrorKind::Unavailable, "the name of the queue was not kept"));
        }
        declare(&channel, name, marked(owner)).await?;
        if let Some(settings) = settings
            && let Some(exchange) = &settings.exchange
        {
            let key = short(settings.routing_key.as_deref().unwrap_or_default())?;
            let bound = channel.queue_bind(
                short(name)?,
                short(exchange)?,
                key,
                QueueBindOptions::default(),
                FieldTable::default(),
            );
            bound.await.map_err(unavailable("binding the queue"))?;
        }
        Ok(())
    };
    link.soon(made).await
}

/// Whether the queue is there and is this owner's.
async fn is_marked(link: &Link, owner: &str, name: &str) -> BridgeResult<bool> {
    if is_missing(link.waiting(name).await.map(drop))? {
        return Ok(false);
    }
    let channel = link.channel().await?;
    match link.soon(declare(&channel, name, marked(owner))).await {
        Ok(()) => Ok(true),
        Err(error) if error.kind == BridgeErrorKind::Refused => Ok(false),
        Err(error) => Err(error),
    }
}

/// The names that were kept. They are given back when the channel is closed.
async fn names(link: &Link, owner: &str) -> BridgeResult<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    each_name(link, owner, |name| {
        names.insert(name.to_owned());
        false
    })
    .await?;
    Ok(names)
}

/// Shows every kept name, and forgets those of which that is answered.
async fn each_name(link: &Link, owner: &str, mut forget: impl FnMut(&str) -> bool) -> BridgeResult<()> {
    let kept = kept_names(owner);
    if is_missing(link.waiting(&kept).await.map(drop))? {
        return Ok(());
    }
    let channel = link.channel().await?;
    for _ in 0..MOST_NAMES {
        let got = async {
            let got = channel.basic_get(short(&kept)?, BasicGetOptions { no_ack: false }).await;
            got.map_err(unavailable("reading the names of queues"))
        };
        let Some(message) = link.soon(got).await? else { break };
        if forget(&String::from_utf8_lossy(&message.data)) {
            let forgotten = channel.basic_ack(message.delivery_tag, BasicAckOptions::default()).await;
            forgotten.map_err(unavailable("forgetting the name of a queue"))?;
        }
    }
    // Closed before this is answered, so that whoever reads next finds them.
    let closed = async { channel.close(200, "read".into()).await.map_err(unavailable("closing a channel")) };
    link.soon(closed).await
}

async fn delete(link: &Link, owner: &str, name: &str) -> BridgeResult<()> {
    if is_marked(link, owner, name).await? {
        let channel = link.channel().await?;
        let gone = async {
            let gone = channel.queue_delete(short(name)?, QueueDeleteOptions::default()).await;
            gone.map(drop).map_err(unavailable("deleting the queue"))
        };
        link.soon(gone).await?;
    }
    each_name(link, owner, |kept| kept == name).await
}
