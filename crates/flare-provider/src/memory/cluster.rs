//! The coordinator within one process: keys and sessions behind one lock. Calls of the contract come in; what any other
//! coordinator would answer goes out. A cluster of one runs on it, and so do several nodes in one test.
//!
//! Its clock is handed in and measures sessions, nothing else does: a session is over when that clock says so, whether or
//! not anybody looks, and watches wake for it by the timers of the runtime.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::cluster::{Cluster, Entry, Granted, Seen, SessionId, Version, Watch};
use crate::error::{Conflict, ErrorKind, ProviderError, Result};

/// Tells the monotonic time.
pub type Now = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A participant. Clones are other participants of the same cluster.
#[derive(Clone)]
pub struct MemoryCluster {
    now: Now,
    shared: Arc<Mutex<Shared>>,
}

impl MemoryCluster {
    /// A coordinator of its own, with nothing in it.
    pub fn new(now: Now) -> MemoryCluster {
        MemoryCluster { now, shared: Arc::default() }
    }

    /// All watches lose track, as they do when a coordinator has forgotten what a watch had not seen yet.
    pub fn lose_track(&self) {
        let mut shared = self.shared.lock();
        for bell in shared.bells() {
            bell.ring(Seen::LostTrack);
        }
    }

    /// Runs one operation on what is there now: sessions that are over are gone.
    fn at_once<T>(&self, operation: impl FnOnce(&mut Shared, Duration) -> T) -> T {
        let mut shared = self.shared.lock();
        let now = (self.now)();
        shared.expire(now);
        operation(&mut shared, now)
    }
}

#[derive(Default)]
struct Shared {
    keys: BTreeMap<String, Held>,
    sessions: BTreeMap<SessionId, Term>,
    version: u64,
    sessions_given: u64,
    /// Bound: the watches that are kept by somebody; the others go when something changes.
    bells: Vec<Weak<Bell>>,
}

struct Held {
    value: Bytes,
    version: Version,
    session: Option<SessionId>,
}

struct Term {
    owner: String,
    ttl: Duration,
    ends: Duration,
}

impl Shared {
    fn expire(&mut self, now: Duration) {
        let over = |term: &Term| term.ends <= now;
        let over: Vec<SessionId> =
            self.sessions.iter().filter(|(_, term)| over(term)).map(|(id, _)| id.clone()).collect();
        for session in over {
            self.end(&session);
        }
    }

    #[cfg(feature = "planted")]
    fn newest_of(&self, owner: &str) -> Option<SessionId> {
        let of_owner = self.sessions.iter().filter(|(_, term)| term.owner == owner);
        of_owner.max_by_key(|(_, term)| term.ends).map(|(session, _)| session.clone())
    }

    fn end(&mut self, session: &SessionId) {
        self.sessions.remove(session);
        let of_it = |held: &Held| held.session.as_ref() == Some(session);
        let keys: Vec<String> =
            self.keys.iter().filter(|(_, held)| of_it(held)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.keys.remove(&key);
            self.changed(&key);
        }
    }

    fn changed(&mut self, key: &str) -> Version {
        self.version += 1;
        for bell in self.bells() {
            if key.starts_with(&bell.prefix) {
                bell.ring(Seen::Changed);
            }
        }
        Version(self.version)
    }

    fn put(&mut self, key: &str, value: Bytes, session: Option<SessionId>) -> Version {
        let version = self.changed(key);
        self.keys.insert(key.to_owned(), Held { value, version, session });
        version
    }

    fn bells(&mut self) -> Vec<Arc<Bell>> {
        let there: Vec<Arc<Bell>> = self.bells.iter().filter_map(Weak::upgrade).collect();
        if there.len() < self.bells.len() {
            self.bells = there.iter().map(Arc::downgrade).collect();
        }
        there
    }
}

#[async_trait]
impl Cluster for MemoryCluster {
    async fn grant(&self, owner: &str, ttl: Duration) -> Result<Granted> {
        Ok(self.at_once(|shared, now| {
            shared.sessions_given += 1;
            let session = SessionId::new(format!("ses_{}", shared.sessions_given));
            let term = Term { owner: owner.to_owned(), ttl, ends: now + ttl };
            shared.sessions.insert(session.clone(), term);
            // Whoever watches waits for the end of a session that it did not know.
            shared.bells().iter().for_each(|bell| bell.woken.notify_one());
            Granted { session, ttl }
        }))
    }

    async fn renew(&self, session: &SessionId, owner: &str) -> Result<Duration> {
        #[cfg(feature = "planted")]
        let session = &match flare_model::planted::Bug::RenewedByName.is_planted() {
            true => self.at_once(|shared, _| shared.newest_of(owner)).unwrap_or_else(|| session.clone()),
            false => session.clone(),
        };
        self.at_once(|shared, now| match shared.sessions.get_mut(session) {
            Some(term) if term.owner == owner => {
                term.ends = now + term.ttl;
                Ok(term.ttl)
            }
            _ => Err(fenced("cluster.renew")),
        })
    }

    async fn end(&self, session: &SessionId, owner: &str) -> Result<()> {
        self.at_once(|shared, _| match shared.sessions.get(session) {
            Some(term) if term.owner != owner => Err(fenced("cluster.end")),
            Some(_) => {
                shared.end(session);
                Ok(())
            }
            None => Ok(()),
        })
    }

    async fn left(&self, session: &SessionId) -> Result<Option<Duration>> {
        Ok(self.at_once(|shared, now| shared.sessions.get(session).map(|term| term.ends.saturating_sub(now))))
    }

    async fn put_if_absent(&self, key: &str, value: Bytes, session: Option<&SessionId>) -> Result<Version> {
        let operation = "cluster.put_if_absent";
        self.at_once(|shared, _| {
            if session.is_some_and(|session| !shared.sessions.contains_key(session)) {
                return Err(fenced(operation));
            }
            if shared.keys.contains_key(key) {
                return Err(ProviderError::conflict(operation, Conflict::Taken(key.to_owned())));
            }
            Ok(shared.put(key, value, session.cloned()))
        })
    }

    async fn put_if(&self, key: &str, version: Version, value: Bytes) -> Result<Version> {
        self.at_once(|shared, _| match shared.keys.get(key) {
            Some(held) if held.version == version => {
                let session = held.session.clone();
                Ok(shared.put(key, value, session))
            }
            _ => Err(ProviderError::conflict("cluster.put_if", Conflict::Version)),
        })
    }

    async fn delete_if(&self, key: &str, version: Version) -> Result<()> {
        self.at_once(|shared, _| match shared.keys.get(key) {
            Some(held) if held.version == version => {
                shared.keys.remove(key);
                shared.changed(key);
                Ok(())
            }
            _ => Err(ProviderError::conflict("cluster.delete_if", Conflict::Version)),
        })
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        Ok(self.at_once(|shared, _| {
            let from = shared.keys.range(prefix.to_owned()..);
            let below = from.take_while(|(key, _)| key.starts_with(prefix));
            below
                .map(|(key, held)| Entry {
                    key: key.clone(),
                    value: held.value.clone(),
                    version: held.version,
                    session: held.session.clone(),
                })
                .collect()
        }))
    }

    async fn watch(&self, prefix: &str) -> Result<Box<dyn Watch>> {
        let bell = Arc::new(Bell { prefix: prefix.to_owned(), rung: Mutex::new(None), woken: Notify::new() });
        self.at_once(|shared, _| shared.bells.push(Arc::downgrade(&bell)));
        Ok(Box::new(MemoryWatch { cluster: self.clone(), bell }))
    }
}

fn fenced(operation: &'static str) -> ProviderError {
    ProviderError::new(ErrorKind::Fenced, operation, "there is no such session of this owner")
}

/// What a watch waits for.
struct Bell {
    prefix: String,
    /// What is to be said next: one word, however much has changed.
    rung: Mutex<Option<Seen>>,
    woken: Notify,
}

impl Bell {
    fn ring(&self, seen: Seen) {
        let mut rung = self.rung.lock();
        if *rung != Some(Seen::LostTrack) {
            *rung = Some(seen);
        }
        self.woken.notify_one();
    }
}

struct MemoryWatch {
    cluster: MemoryCluster,
    bell: Arc<Bell>,
}

#[async_trait]
impl Watch for MemoryWatch {
    async fn next(&mut self) -> Result<Seen> {
        loop {
            let soonest = self.cluster.at_once(|shared, now| {
                let ends = shared.sessions.values().map(|term| term.ends).min();
                ends.map(|ends| ends.saturating_sub(now))
            });
            if let Some(seen) = self.bell.rung.lock().take() {
                return Ok(seen);
            }
            match soonest {
                // It may have been renewed by then, so this only looks again.
                Some(wait) => drop(tokio::time::timeout(wait, self.bell.woken.notified()).await),
                None => self.bell.woken.notified().await,
            }
        }
    }
}
