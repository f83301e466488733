//! What the behaviours of coordinators are written with, and the gathering of the engine in memory.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::Instant;

use super::{ClusterFactory, Gathering, Participant};
use crate::cluster::{Cluster, Entry, Granted, SessionId, Version};
use crate::error::{Conflict, ErrorKind, Result};
use crate::memory::{MemoryCluster, MemoryDoorbell};

/// How often something that is to happen is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// How long anything may take. Only a failure takes so long.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The clock of the runtime that runs the behaviour.
#[expect(clippy::disallowed_methods, reason = "the suite runs by the runtime's clock, paused or not")]
pub fn now() -> Instant {
    Instant::now()
}

/// Tells the time since this was called.
pub fn stopwatch() -> impl Fn() -> Duration + Send + Sync + Clone + 'static {
    let began = now();
    move || now() - began
}

/// Clusters of the engine in memory.
pub struct MemoryClusterFactory;

struct MemoryGathering {
    cluster: MemoryCluster,
    doorbell: MemoryDoorbell,
}

#[async_trait]
impl ClusterFactory for MemoryClusterFactory {
    async fn fresh(&self) -> Option<Box<dyn Gathering>> {
        let cluster = MemoryCluster::new(Arc::new(stopwatch()));
        Some(Box::new(MemoryGathering { cluster, doorbell: MemoryDoorbell::new() }))
    }
}

#[async_trait]
impl Gathering for MemoryGathering {
    async fn join(&self) -> Participant {
        Participant { cluster: Arc::new(self.cluster.clone()), doorbell: Arc::new(self.doorbell.clone()) }
    }

    fn shortest_ttl(&self) -> Duration {
        Duration::from_secs(2)
    }
}

impl Participant {
    /// Begins a session of this owner.
    pub async fn grant(&self, owner: &str, ttl: Duration) -> Granted {
        self.cluster.grant(owner, ttl).await.expect("a session is given")
    }

    /// Creates a key that is not there.
    pub async fn put(&self, key: &str, value: &str, session: Option<&SessionId>) -> Version {
        let put = self.cluster.put_if_absent(key, Bytes::copy_from_slice(value.as_bytes()), session).await;
        put.expect("the key is not there")
    }

    /// Replaces a key.
    pub async fn replace(&self, key: &str, version: Version, value: &str) -> Result<Version> {
        self.cluster.put_if(key, version, Bytes::copy_from_slice(value.as_bytes())).await
    }

    /// All keys below a prefix.
    pub async fn list(&self, prefix: &str) -> Vec<Entry> {
        self.cluster.list(prefix).await.expect("the list is read")
    }

    /// The names of all keys below a prefix.
    pub async fn names(&self, prefix: &str) -> Vec<String> {
        self.list(prefix).await.into_iter().map(|entry| entry.key).collect()
    }

    /// One key.
    pub async fn get(&self, key: &str) -> Option<Entry> {
        self.list(key).await.into_iter().find(|entry| entry.key == key)
    }

    /// Waits until a key is gone.
    pub async fn until_gone(&self, key: &str) {
        let gone = async {
            while self.get(key).await.is_some() {
                tokio::time::sleep(LOOK).await;
            }
        };
        within(gone, "the key goes").await
    }
}

/// What comes of something that has to come soon.
pub async fn within<T>(what: impl Future<Output = T>, name: &str) -> T {
    match tokio::time::timeout(PATIENCE, what).await {
        Ok(done) => done,
        Err(_) => panic!("in vain: {name}"),
    }
}

/// Which kind of error it is.
pub fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.expect_err("it is refused").kind
}

/// The key is there.
pub fn taken(key: &str) -> ErrorKind {
    ErrorKind::Conflict(Conflict::Taken(key.to_owned()))
}

/// The version is another one.
pub const OTHER_VERSION: ErrorKind = ErrorKind::Conflict(Conflict::Version);

/// A coordinator through its contract.
pub fn contract(participant: &Participant) -> &dyn Cluster {
    &*participant.cluster
}
