//! etcd as the coordinator and the doorbell of a cluster, over its JSON gateway: the contracts of `flare_provider` come in,
//! requests to one of several members go out.
//!
//! The gateway writes numbers of 64 bits as strings and leaves out what is zero, empty or false; keys and values are base64. Streams
//! (watches) are one JSON object per line. Everything of one cluster is below a prefix:
//!
//! | key | has |
//! |---|---|
//! | `<prefix>k/…` | the keys of the contract |
//! | `<prefix>s/<lease>` | the owner of a session, in its lease |
//! | `<prefix>bell` | the last rings; each is a revision that listeners are shown |

mod answer;
mod cluster;
mod connection;
mod doorbell;
mod follow;
mod gateway;

use std::sync::Arc;
use std::time::Duration;

use flare_provider::{ErrorKind, ProviderError, Result};
use tokio_rustls::rustls::ClientConfig;

use gateway::Gateway;

/// Where etcd is, and how it is spoken to.
#[derive(Clone)]
pub struct EtcdConfig {
    /// Its members, `http://host:port` or `https://host:port`, in the order in which they are tried.
    pub endpoints: Vec<String>,
    /// Everything is below it.
    pub prefix: String,
    /// User and password, where it wants them.
    pub login: Option<Login>,
    /// Whom to trust, for members by `https`.
    pub tls: Option<Arc<ClientConfig>>,
    /// How long a member may take to answer.
    pub timeout: Duration,
}

/// User and password.
#[derive(Clone)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

/// etcd, as one process has it. Clones share its connections.
#[derive(Clone)]
pub struct Etcd {
    gateway: Arc<Gateway>,
}

impl Etcd {
    /// Reads the configuration. Nothing is asked of a member yet: one that is away now may be there when it is needed.
    pub fn new(config: EtcdConfig) -> Result<Etcd> {
        let gateway = Gateway::new(config)
            .map_err(|mistake| ProviderError::new(ErrorKind::Unsupported, "etcd.new", mistake.to_string()))?;
        Ok(Etcd { gateway: Arc::new(gateway) })
    }
}
