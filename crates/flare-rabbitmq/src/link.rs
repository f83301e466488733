//! One connection to the broker, made when something is asked of it and made again when it broke. Whoever asks waits for it; nothing runs beside that.

use std::time::Duration;

use flare_provider::bridge::{BridgeError, BridgeErrorKind, BridgeResult};
use lapin::options::QueueDeclareOptions;
use lapin::tcp::OwnedTLSConfig;
use lapin::types::{FieldTable, ShortString};
use lapin::uri::AMQPUri;
use lapin::{Channel, Connection, ConnectionProperties};
use tokio::sync::Mutex;

use crate::Options;
use crate::error::bridge_error;

/// How often broker and client let each other know that they are there, in seconds, unless the url says otherwise. Who is silent for twice as
/// long is gone.
const HEARTBEAT: u16 = 5;

/// A connection.
pub struct Link {
    uri: AMQPUri,
    ca: Option<String>,
    /// What people see it by in the broker's own lists.
    name: String,
    timeout: Duration,
    connection: Mutex<Option<Connection>>,
}

impl Link {
    pub fn new(options: &Options, what: &str) -> BridgeResult<Link> {
        // Its words would repeat the url, which has a password in it.
        let mut uri: AMQPUri = options.url.parse().map_err(|_| {
            let words = "the url of RabbitMQ cannot be read; write amqp://user:password@host:port/vhost";
            BridgeError::new(BridgeErrorKind::Refused, words)
        })?;
        uri.query.heartbeat.get_or_insert(HEARTBEAT);
        Ok(Link {
            uri,
            ca: options.ca.clone(),
            name: format!("flare {} {what}", options.owner),
            timeout: options.timeout,
            connection: Mutex::new(None),
        })
    }

    /// A channel of its own, over the connection that there is or a new one.
    pub async fn channel(&self) -> BridgeResult<Channel> {
        let opened = async {
            let mut connection = self.connection.lock().await;
            if let Some(there) = connection.as_ref().filter(|there| there.status().connected()) {
                // It may break while it is asked; then there is a new one.
                if let Ok(channel) = there.create_channel().await {
                    return Ok(channel);
                }
            }
            *connection = None;
            let made = self.connect().await?;
            let channel = made.create_channel().await;
            *connection = Some(made);
            channel.map_err(|error| bridge_error(error, BridgeErrorKind::Unavailable, "opening a channel"))
        };
        self.soon(opened).await
    }

    async fn connect(&self) -> BridgeResult<Connection> {
        let properties = ConnectionProperties::default().with_connection_name(self.name.as_str().into());
        let tls = OwnedTLSConfig { identity: None, cert_chain: self.ca.clone() };
        let runtime = lapin::runtime::default_runtime();
        let unavailable = |error| bridge_error(error, BridgeErrorKind::Unavailable, "connecting to RabbitMQ");
        let runtime = runtime.map_err(unavailable)?;
        Connection::connect_uri_with_config(self.uri.clone(), properties, tls, runtime)
            .await
            .map_err(unavailable)
    }

    /// What the broker answers at once, or not at all.
    pub async fn soon<T>(&self, what: impl Future<Output = BridgeResult<T>>) -> BridgeResult<T> {
        match tokio::time::timeout(self.timeout, what).await {
            Ok(answer) => answer,
            Err(_) => {
                let words = format!("RabbitMQ did not answer within {:?}", self.timeout);
                Err(BridgeError::new(BridgeErrorKind::Unavailable, words))
            }
        }
    }

    /// Whether the broker asks those who publish to wait.
    pub async fn is_blocked(&self) -> bool {
        self.connection.lock().await.as_ref().is_some_and(|there| there.status().blocked())
    }

    /// How many messages wait in a queue. `Missing`: it does not exist.
    pub async fn waiting(&self, queue: &str) -> BridgeResult<u64> {
        // A question about what does not exist ends its channel.
        let channel = self.channel().await?;
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let asked = async {
            let declared = channel.queue_declare(short(queue)?, passive, FieldTable::default()).await;
            declared
                .map_err(|error| bridge_error(error, BridgeErrorKind::Unavailable, "looking at the queue"))
        };
        Ok(u64::from(self.soon(asked).await?.message_count()))
    }
}

/// A name as AMQP has it: 255 bytes at the most.
pub fn short(name: &str) -> BridgeResult<ShortString> {
    ShortString::try_new(name).map_err(|_| {
        let words = format!("a name of {} bytes is too long for RabbitMQ, which takes 255", name.len());
        BridgeError::new(BridgeErrorKind::Refused, words)
    })
}
