//! The coordinator and the doorbell of a cluster, in the same database: calls of `Cluster` and `Doorbell` come in, single
//! statements go out, each of them a transaction of its own.
//!
//! ```text
//! grant, renew, end    → sessions.rs   the server's clock says how long
//! put, delete, list    → keys.rs
//! watch                → watch.rs      woken by follow.rs, which looks when told to, when it is time to, and when a session is over
//! ring                 → ringing.rs    gathered, and sent at most once in a while
//! listen               → ear.rs        one connection that listens, probes itself, and pings
//! ```
//! A session is over when its row is gone: whoever sees that its time has passed removes it first, and its keys with it, and
//! only then says so. So a clock of the server that is set back brings nobody back.

mod ear;
mod follow;
mod keys;
mod ringing;
mod sessions;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_model::ids::url_hash;
use flare_provider::{
    Cluster, Doorbell, Entry, ErrorKind, Granted, Heard, Listener, ProviderError, Result, Ring, SessionId,
    Version, Watch,
};
use tokio::sync::{Notify, broadcast};
use tokio::task::JoinSet;

use crate::connect::Connector;
use crate::engine::Runner;
use crate::error;
use ear::{Ear, Hearing};
use keys::Put;
use ringing::Ringer;

/// Which cluster, and where it is told of.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The name of the cluster: those of another name in the same schema are others.
    pub cluster: Arc<str>,
    /// Where rings and changes are told of.
    pub channel: Arc<str>,
}

/// Rings that a listener may be behind. When full: the oldest go, and the listener hears that it missed some.
const KEPT: usize = 1024;

/// A participant of a cluster. Clones are the same one.
#[derive(Clone)]
pub struct Coordination {
    shared: Arc<Shared>,
}

struct Shared {
    runner: Runner,
    /// What keeps sessions.
    renewing: Runner,
    place: Place,
    /// Rung when something may have changed.
    look: Arc<Notify>,
    numbers: tokio::sync::watch::Receiver<u64>,
    rings: broadcast::Sender<Heard>,
    hearing: tokio::sync::watch::Receiver<Hearing>,
    ringer: Ringer,
    patience: Duration,
    /// What is done in the background; it ends with the last clone.
    _tasks: JoinSet<()>,
}

/// What a participant is made of.
pub(crate) struct Parts {
    pub connector: Arc<Connector>,
    pub runner: Runner,
    /// For what keeps sessions, which waits for nobody else.
    pub renewing: Runner,
    pub schema: String,
    pub name: String,
    pub poll_interval: Duration,
    pub connect_timeout: Duration,
    pub ping: Duration,
}

impl Coordination {
    /// Begins to follow and to listen, in the background.
    pub(crate) fn start(parts: Parts) -> Coordination {
        let Parts { connector, runner, renewing, schema, name, poll_interval, connect_timeout, ping } = parts;
        // Names of channels are short, and those of schemas and clusters need not be.
        let channel = format!("flare_{:016x}", url_hash(&format!("{schema}/{name}")));
        let place = Place { cluster: name.into(), channel: channel.into() };
        let (look, rings) = (Arc::new(Notify::new()), broadcast::Sender::new(KEPT));
        let (tell_number, numbers) = tokio::sync::watch::channel(0);
        let (tell_hearing, hearing) = tokio::sync::watch::channel(Hearing::NotYet);
        let mut tasks = JoinSet::new();
        let (following, looking, at) = (runner.clone(), look.clone(), place.clone());
        tasks.spawn_on(follow::run(following, at, looking, tell_number, poll_interval), &runner.handle);
        let ear = Ear {
            connector,
            runner: runner.clone(),
            channel: place.channel.clone(),
            rings: rings.clone(),
            look: look.clone(),
            hearing: tell_hearing,
            poll_interval,
            ping,
        };
        tasks.spawn_on(ear.run(), &runner.handle);
        let (ringer, ring) = Ringer::new(runner.clone(), place.channel.clone());
        tasks.spawn_on(ring, &runner.handle);
        let patience = connect_timeout * 2;
        let shared = Shared {
            runner,
            renewing,
            place,
            look,
            numbers,
            rings,
            hearing,
            ringer,
            patience,
            _tasks: tasks,
        };
        Coordination { shared: Arc::new(shared) }
    }

    /// Sessions whose time has passed go, and their keys with them.
    async fn expire(&self, operation: &'static str) -> Result<u64> {
        let place = self.shared.place.clone();
        let expire = move |session: Arc<crate::pool::Borrowed>| async move {
            sessions::expire(&session, &place).await
        };
        let gone = self.shared.runner.write(operation, expire).await?;
        self.shared.look.notify_one();
        Ok(gone)
    }
}

fn fenced(operation: &'static str) -> ProviderError {
    ProviderError::new(
        ErrorKind::Fenced,
        operation,
        "there is no such session of this owner, or not any more",
    )
}

#[async_trait]
impl Cluster for Coordination {
    async fn grant(&self, owner: &str, ttl: Duration) -> Result<Granted> {
        const OPERATION: &str = "cluster.grant";
        let millis = i64::try_from(ttl.as_millis()).ok().filter(|millis| *millis > 0);
        let Some(millis) = millis else {
            let detail = "a session lives for a millisecond at least";
            return Err(ProviderError::new(ErrorKind::Unsupported, OPERATION, detail));
        };
        // In whole milliseconds, and never less than was asked for.
        let millis = millis + i64::from(ttl > Duration::from_millis(millis as u64));
        let (place, owner) = (self.shared.place.clone(), owner.to_owned());
        let grant = move |session: Arc<crate::pool::Borrowed>| async move {
            sessions::grant(&session, &place, &owner, millis).await
        };
        let session = self.shared.renewing.write(OPERATION, grant).await?;
        self.shared.look.notify_one();
        Ok(Granted { session, ttl: Duration::from_millis(millis as u64) })
    }

    async fn renew(&self, session: &SessionId, owner: &str) -> Result<Duration> {
        const OPERATION: &str = "cluster.renew";
        let (place, id, owner) = (self.shared.place.clone(), session.clone(), owner.to_owned());
        let renew = move |session: Arc<crate::pool::Borrowed>| async move {
            sessions::renew(&session, &place, &id, &owner).await
        };
        if let Some(ttl) = self.shared.renewing.write(OPERATION, renew).await? {
            return Ok(ttl);
        }
        // If its time has just passed it goes first, so that nobody ever renews it again.
        self.expire(OPERATION).await?;
        Err(fenced(OPERATION))
    }

    async fn end(&self, session: &SessionId, owner: &str) -> Result<()> {
        const OPERATION: &str = "cluster.end";
        let (place, id, owner) = (self.shared.place.clone(), session.clone(), owner.to_owned());
        let end = move |session: Arc<crate::pool::Borrowed>| async move {
            sessions::end(&session, &place, &id, &owner).await
        };
        let ended = self.shared.runner.write(OPERATION, end).await?;
        self.shared.look.notify_one();
        if ended { Ok(()) } else { Err(fenced(OPERATION)) }
    }

    async fn left(&self, session: &SessionId) -> Result<Option<Duration>> {
        let (place, id) = (self.shared.place.clone(), session.clone());
        let left = move |session: Arc<crate::pool::Borrowed>| async move {
            sessions::left(&session, &place, &id).await
        };
        self.shared.runner.read("cluster.left", left).await
    }

    async fn put_if_absent(&self, key: &str, value: Bytes, session: Option<&SessionId>) -> Result<Version> {
        const OPERATION: &str = "cluster.put_if_absent";
        refuse_zero(OPERATION, key)?;
        for last in [false, true] {
            let (place, key, value) = (self.shared.place.clone(), key.to_owned(), value.clone());
            let session = session.cloned();
            let put = move |connection: Arc<crate::pool::Borrowed>| async move {
                keys::put_if_absent(&connection, &place, &key, &value, session.as_ref()).await
            };
            let put = self.shared.runner.write(OPERATION, put).await?;
            match put {
                Put::Done(version) => {
                    self.shared.look.notify_one();
                    return Ok(version);
                }
                Put::Fenced => {
                    self.expire(OPERATION).await?;
                    return Err(fenced(OPERATION));
                }
                // It may be the key of a session whose time has passed.
                Put::Taken if !last && self.expire(OPERATION).await? > 0 => {}
                Put::Taken => break,
            }
        }
        Err(ProviderError::conflict(OPERATION, flare_provider::Conflict::Taken(key.to_owned())))
    }

    async fn put_if(&self, key: &str, version: Version, value: Bytes) -> Result<Version> {
        const OPERATION: &str = "cluster.put_if";
        let (place, key) = (self.shared.place.clone(), key.to_owned());
        let put = move |connection: Arc<crate::pool::Borrowed>| async move {
            keys::put_if(&connection, &place, &key, version, &value).await
        };
        let put = self.shared.runner.write(OPERATION, put).await?;
        self.shared.look.notify_one();
        put.ok_or_else(|| ProviderError::conflict(OPERATION, flare_provider::Conflict::Version))
    }

    async fn delete_if(&self, key: &str, version: Version) -> Result<()> {
        const OPERATION: &str = "cluster.delete_if";
        let (place, key) = (self.shared.place.clone(), key.to_owned());
        let delete = move |connection: Arc<crate::pool::Borrowed>| async move {
            keys::delete_if(&connection, &place, &key, version).await
        };
        let deleted = self.shared.runner.write(OPERATION, delete).await?;
        self.shared.look.notify_one();
        match deleted {
            true => Ok(()),
            false => Err(ProviderError::conflict(OPERATION, flare_provider::Conflict::Version)),
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        const OPERATION: &str = "cluster.list";
        refuse_zero(OPERATION, prefix)?;
        let (runner, cluster) = (&self.shared.runner, self.shared.place.cluster.clone());
        let over = move |session: Arc<crate::pool::Borrowed>| async move {
            sessions::some_are_over(&session, &cluster).await
        };
        if runner.read(OPERATION, over).await? {
            self.expire(OPERATION).await?;
        }
        let (cluster, prefix) = (self.shared.place.cluster.clone(), prefix.to_owned());
        let list = move |session: Arc<crate::pool::Borrowed>| async move {
            keys::list(&session, &cluster, &prefix).await
        };
        runner.read(OPERATION, list).await
    }

    async fn watch(&self, prefix: &str) -> Result<Box<dyn Watch>> {
        refuse_zero("cluster.watch", prefix)?;
        let Shared { runner, place, numbers, .. } = &*self.shared;
        let watch = watch::Watching::begin(runner.clone(), place, prefix, numbers.clone()).await?;
        Ok(Box::new(KeepsAlive { watch, _cluster: self.clone() }))
    }
}

/// The server takes no text with it.
fn refuse_zero(operation: &'static str, key: &str) -> Result<()> {
    match key.contains('\0') {
        true => Err(ProviderError::new(ErrorKind::Unsupported, operation, "a key has no zero bytes")),
        false => Ok(()),
    }
}

/// A watch, and what it is woken by.
struct KeepsAlive {
    watch: watch::Watching,
    _cluster: Coordination,
}

#[async_trait]
impl Watch for KeepsAlive {
    async fn next(&mut self) -> Result<flare_provider::Seen> {
        self.watch.next().await
    }
}

#[async_trait]
impl Doorbell for Coordination {
    async fn ring(&self, rings: &[Ring]) -> Result<()> {
        self.shared.ringer.ring(rings);
        Ok(())
    }

    async fn listen(&self) -> Result<Box<dyn Listener>> {
        const OPERATION: &str = "doorbell.listen";
        let heard = self.shared.rings.subscribe();
        let mut hearing = self.shared.hearing.clone();
        let known = hearing.wait_for(|hearing| *hearing != Hearing::NotYet);
        match tokio::time::timeout(self.shared.patience, known).await {
            Ok(Ok(_)) => Ok(Box::new(Listening { heard, _cluster: self.clone() })),
            Ok(Err(_ended)) => Err(error::closed(OPERATION)),
            Err(_elapsed) => {
                let detail = "PostgreSQL cannot be reached to listen";
                Err(ProviderError::new(ErrorKind::Unavailable, OPERATION, detail))
            }
        }
    }
}

struct Listening {
    heard: broadcast::Receiver<Heard>,
    _cluster: Coordination,
}

#[async_trait]
impl Listener for Listening {
    async fn next(&mut self) -> Result<Heard> {
        match self.heard.recv().await {
            Ok(heard) => Ok(heard),
            Err(broadcast::error::RecvError::Lagged(_)) => Ok(Heard::Missed),
            Err(broadcast::error::RecvError::Closed) => Err(error::closed("doorbell.next")),
        }
    }
}
