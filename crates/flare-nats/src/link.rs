//! The connection, made when something is asked of it. The client makes it again when it broke; until then whoever asks hears that it is away.

use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use flare_provider::bridge::{BridgeError, BridgeErrorKind, BridgeResult};
use tokio::sync::Mutex;

use crate::Options;

/// The longest wait before it is tried again to connect.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// How often the client asks whether the server is there. Two questions without an answer, and it connects anew.
const PING: Duration = Duration::from_secs(5);

/// A connection.
pub struct Link {
    options: Options,
    servers: Vec<ServerAddr>,
    client: Mutex<Option<Client>>,
}

/// Which connection it is: another one after a break, or after a restart of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(String, u64);

impl Link {
    pub fn new(options: Options) -> BridgeResult<Link> {
        let servers: Result<Vec<ServerAddr>, _> =
            options.url.split(',').map(|url| url.trim().parse()).collect();
        // Its words would repeat the url, which may have a password in it.
        let servers = servers.map_err(|_| {
            let words = "the url of NATS cannot be read; write nats://host:port, or tls://host:port";
            BridgeError::new(BridgeErrorKind::Refused, words)
        })?;
        Ok(Link { options, servers, client: Mutex::new(None) })
    }

    pub fn timeout(&self) -> Duration {
        self.options.timeout
    }

    /// The client, if the server can be reached at the moment.
    pub async fn client(&self) -> BridgeResult<Client> {
        let mut client = self.client.lock().await;
        let connected = match client.as_ref() {
            Some(there) => there.clone(),
            None => client.insert(self.connect().await?).clone(),
        };
        match connected.connection_state() {
            State::Connected => Ok(connected),
            State::Pending | State::Disconnected => {
                Err(away("the connection to NATS broke, and is made again"))
            }
        }
    }

    async fn connect(&self) -> BridgeResult<Client> {
        let mut options = ConnectOptions::new()
            .name(format!("flare {}", self.options.owner))
            .connection_timeout(self.options.timeout)
            .request_timeout(Some(self.options.timeout))
            .ping_interval(PING)
            .reconnect_delay_callback(|attempts| {
                LONGEST_WAIT.min(
                    Duration::from_millis(20).saturating_mul(u32::try_from(attempts).unwrap_or(u32::MAX)),
                )
            });
        if let Some(path) = &self.options.credentials {
            let words = format!("the credentials of NATS cannot be read from {}", path.display());
            let read = options.credentials_file(path).await;
            options =
                read.map_err(|error| BridgeError::new(BridgeErrorKind::Refused, words).because(error))?;
        }
        if let Some(path) = &self.options.ca {
            options = options.add_root_certificates(path.clone());
        }
        options.connect(&self.servers[..]).await.map_err(|error| {
            let kind = match error.kind() {
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                    BridgeErrorKind::Refused
                }
                _ => BridgeErrorKind::Unavailable,
            };
            BridgeError::new(kind, format!("connecting to NATS: {error}")).because(error)
        })
    }
}

/// Which connection a client has now.
pub fn identity(client: &Client) -> Identity {
    let info = client.server_info();
    Identity(info.server_id, info.client_id)
}

pub fn away(words: &str) -> BridgeError {
    BridgeError::new(BridgeErrorKind::Unavailable, words)
}
