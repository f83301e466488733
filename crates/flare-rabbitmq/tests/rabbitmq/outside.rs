//! The world outside of the engine: queues that tests make, fill, read and delete by a connection of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use flare_model::bridge::RabbitMqSource;
use flare_model::time::Timestamp;
use flare_provider::conformance::bridge::Server;
use flare_provider::conformance::bridge::proxy::Proxy;
use flare_rabbitmq::{Options, RabbitMq};
use futures_util::future::join_all;
use lapin::options::{
    BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions, QueueBindOptions,
    QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, ExchangeKind};

use super::server::{Broker, Held, broker};

/// A queue on the broker, and a way to it that can be broken.
pub struct Site {
    pub broker: Arc<Broker>,
    _held: Held,
    pub proxy: Proxy,
    pub queue: String,
    pub quorum: bool,
}

impl Site {
    /// One with a queue of its own.
    pub async fn new(server: Server, quorum: bool) -> Option<Site> {
        let site = Site::without_queue(server, quorum).await?;
        site.declare().await;
        Some(site)
    }

    pub async fn without_queue(server: Server, quorum: bool) -> Option<Site> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (broker, held) = broker(server).await?;
        let proxy = Proxy::before(broker.address.clone()).await;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let queue = format!("test-{}-{number}", std::process::id());
        Some(Site { broker, _held: held, proxy, queue, quorum })
    }

    /// A process of Flare's, by the way that can be broken.
    pub fn engine(&self) -> RabbitMq {
        self.engine_of("test")
    }

    /// The same for a cluster of this name.
    pub fn engine_of(&self, owner: &str) -> RabbitMq {
        let options = Options {
            url: self.broker.url(&self.proxy.addr().to_string()),
            ca: None,
            owner: owner.to_owned(),
            timeout: Duration::from_secs(5),
            now: Arc::new(now),
        };
        RabbitMq::new(options).expect("the url is right")
    }

    pub fn settings(&self, queue: &str) -> RabbitMqSource {
        RabbitMqSource {
            queue: queue.to_owned(),
            prefetch: 100,
            exchange: None,
            routing_key: None,
            create: self.quorum,
        }
    }

    /// A channel that goes to the broker directly. Its connection ends with it.
    pub async fn direct(&self) -> (Connection, Channel) {
        let url = self.broker.url(&self.broker.address);
        let connection =
            Connection::connect(&url, ConnectionProperties::default()).await.expect("it answers");
        let channel = connection.create_channel().await.expect("a channel");
        (connection, channel)
    }

    pub async fn declare(&self) {
        let (_connection, channel) = self.direct().await;
        let mut arguments = FieldTable::default();
        let kind = if self.quorum { "quorum" } else { "classic" };
        arguments.insert("x-queue-type".into(), AMQPValue::LongString(kind.into()));
        let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel.queue_declare(self.queue.as_str().into(), durable, arguments).await.expect("it is made");
    }

    /// An exchange from which the queue gets what has this key.
    pub async fn bind(&self, exchange: &str, key: &str) {
        let (_connection, channel) = self.direct().await;
        let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let made =
            channel.exchange_declare(exchange.into(), ExchangeKind::Topic, durable, FieldTable::default());
        made.await.expect("it is made");
        let options = QueueBindOptions::default();
        let queue = self.queue.as_str().into();
        let bound = channel.queue_bind(queue, exchange.into(), key.into(), options, FieldTable::default());
        bound.await.expect("it is bound");
    }

    pub async fn put(&self, payloads: Vec<Bytes>) {
        let (_connection, channel) = self.direct().await;
        channel.confirm_select(ConfirmSelectOptions::default()).await.expect("it confirms");
        let mut confirms = Vec::new();
        for payload in &payloads {
            let properties = BasicProperties::default().with_delivery_mode(2);
            let options = BasicPublishOptions { mandatory: true, immediate: false };
            let sent =
                channel.basic_publish("".into(), self.queue.as_str().into(), options, payload, properties);
            confirms.push(sent.await.expect("it is sent"));
        }
        for confirmed in join_all(confirms).await {
            let confirmed = confirmed.expect("it is confirmed");
            assert!(confirmed.is_ack() && confirmed.take_message().is_none(), "it arrived");
        }
    }

    pub async fn delete(&self) {
        let (_connection, channel) = self.direct().await;
        let gone = channel.queue_delete(self.queue.as_str().into(), QueueDeleteOptions::default()).await;
        gone.expect("it is deleted");
    }

    /// Takes what is in the queue.
    pub async fn take_all(&self) -> Vec<lapin::message::Delivery> {
        let (_connection, channel) = self.direct().await;
        let mut taken = Vec::new();
        loop {
            let got = channel.basic_get(self.queue.as_str().into(), BasicGetOptions { no_ack: true }).await;
            match got.expect("it answers") {
                Some(message) => taken.push(message.delivery),
                None => return taken,
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the tests of a real server run by the real clock")]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is after 1970");
    Timestamp::from_millis(i64::try_from(since.as_millis()).expect("it is before the year 292 million"))
}
