//! The coordinator: sessions are leases, versions are revisions, and what depends on a version is a transaction.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_provider::{
    Cluster, Conflict, Entry, ErrorKind, Granted, ProviderError, Result, Seen, SessionId, Version, Watch,
};
use serde_json::{Value, json};

use crate::Etcd;
use crate::answer::{self, KeptAlive, Ranged, Streamed, Transacted, encoded};
use crate::follow::{Followed, Follower};
use crate::gateway::{Effect, Failure};

impl Etcd {
    fn key(&self, key: &str) -> String {
        format!("{}k/{key}", self.gateway.config().prefix)
    }

    fn session_key(&self, session: &SessionId) -> String {
        format!("{}s/{session}", self.gateway.config().prefix)
    }

    async fn transact(&self, operation: &'static str, transaction: &Value) -> Result<Transacted> {
        let answer = self.gateway.call(operation, "/v3/kv/txn", transaction, Effect::Writes).await;
        answer.map_err(|failure| failure.into_error(operation))
    }

    /// Whose session it is: its owner, or nobody's any more.
    async fn owner(&self, operation: &'static str, session: &SessionId) -> Result<Option<Vec<u8>>> {
        let range = json!({"key": encoded(self.session_key(session))});
        let answer = self.gateway.call(operation, "/v3/kv/range", &range, Effect::Reads).await;
        let found: Ranged = answer.map_err(|failure| failure.into_error(operation))?;
        Ok(found.kvs.into_iter().next().map(|found| found.value))
    }
}

fn fenced(operation: &'static str) -> ProviderError {
    ProviderError::new(ErrorKind::Fenced, operation, "there is no such session of this owner")
}

/// All keys that begin with this end before that; nothing: they go to the end.
pub(crate) fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}

/// As a revision of etcd's, if it can be one: it counts from 1 and has a sign.
fn revision(version: Version) -> Option<String> {
    (version.0 > 0 && i64::try_from(version.0).is_ok()).then(|| version.to_string())
}

#[async_trait]
impl Cluster for Etcd {
    async fn grant(&self, owner: &str, ttl: Duration) -> Result<Granted> {
        let operation = "cluster.grant";
        // Whole seconds, rounded up: a lease is never shorter than what was asked for.
        let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        let asked = json!({"TTL": seconds.max(1).to_string()});
        let answer = self.gateway.call(operation, "/v3/lease/grant", &asked, Effect::Writes).await;
        let granted: answer::Granted = answer.map_err(|failure| failure.into_error(operation))?;
        let session = SessionId::new(granted.id.to_string());
        let put = json!({
            "key": encoded(self.session_key(&session)),
            "value": encoded(owner),
            "lease": granted.id.to_string(),
        });
        let answer = self.gateway.call::<Value>(operation, "/v3/kv/put", &put, Effect::Writes).await;
        answer.map_err(|failure| failure.into_error(operation))?;
        // The lease counts from when it was given, which is after this was asked and before the owner was written.
        Ok(Granted { session, ttl: Duration::from_secs(granted.ttl) })
    }

    async fn renew(&self, session: &SessionId, owner: &str) -> Result<Duration> {
        let operation = "cluster.renew";
        // A lease is renewed by its number alone, so whose it is is asked first; who asked then cannot become another.
        if self.owner(operation, session).await?.as_deref() != Some(owner.as_bytes()) {
            return Err(fenced(operation));
        }
        let asked = json!({"ID": session.as_str()});
        let answer = self.gateway.call(operation, "/v3/lease/keepalive", &asked, Effect::Writes).await;
        let kept: Streamed<KeptAlive> = answer.map_err(|failure| failure.into_error(operation))?;
        let ttl = match kept {
            Streamed::Result(kept) => kept.ttl.and_then(|ttl| ttl.parse().ok()).filter(|ttl: &u64| *ttl > 0),
            Streamed::Error(error) => {
                return Err(ProviderError::new(ErrorKind::Unavailable, operation, error.to_string()));
            }
        };
        ttl.map(Duration::from_secs).ok_or_else(|| fenced(operation))
    }

    async fn end(&self, session: &SessionId, owner: &str) -> Result<()> {
        let operation = "cluster.end";
        match self.owner(operation, session).await? {
            None => return Ok(()),
            Some(found) if found != owner.as_bytes() => return Err(fenced(operation)),
            Some(_) => {}
        }
        let asked = json!({"ID": session.as_str()});
        match self.gateway.call::<Value>(operation, "/v3/lease/revoke", &asked, Effect::Writes).await {
            Ok(_) | Err(Failure::NoLease) => Ok(()),
            Err(failure) => Err(failure.into_error(operation)),
        }
    }

    async fn left(&self, session: &SessionId) -> Result<Option<Duration>> {
        let operation = "cluster.left";
        let asked = json!({"ID": session.as_str()});
        let answer = self.gateway.call(operation, "/v3/lease/timetolive", &asked, Effect::Reads).await;
        let left: answer::Left = match answer {
            Err(Failure::NoLease) => return Ok(None),
            answer => answer.map_err(|failure| failure.into_error(operation))?,
        };
        // Whole seconds, rounded down; below zero: it is over.
        let seconds = u64::try_from(left.ttl).ok();
        Ok(seconds.filter(|_| left.granted > 0).map(|seconds| Duration::from_secs(seconds + 1)))
    }

    async fn put_if_absent(&self, key: &str, value: Bytes, session: Option<&SessionId>) -> Result<Version> {
        let operation = "cluster.put_if_absent";
        let name = encoded(self.key(key));
        let mut put = json!({"key": name, "value": encoded(value)});
        if let Some(session) = session {
            put["lease"] = json!(session.as_str());
        }
        let asked = json!({
            "compare": [{"key": name, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}],
            "success": [{"request_put": put}],
        });
        let done = self.transact(operation, &asked).await?;
        if done.succeeded {
            return Ok(Version(done.header.revision));
        }
        // With a lease that is over the key's being taken says nothing: the session is what the caller has to know of.
        if let Some(session) = session
            && self.owner(operation, session).await?.is_none()
        {
            return Err(fenced(operation));
        }
        Err(ProviderError::conflict(operation, Conflict::Taken(key.to_owned())))
    }

    async fn put_if(&self, key: &str, version: Version, value: Bytes) -> Result<Version> {
        let operation = "cluster.put_if";
        let other = || ProviderError::conflict(operation, Conflict::Version);
        let name = encoded(self.key(key));
        let asked = json!({
            "compare": [{"key": name, "target": "MOD", "result": "EQUAL", "mod_revision": revision(version).ok_or_else(other)?}],
            "success": [{"request_put": {"key": name, "value": encoded(value), "ignore_lease": true}}],
        });
        let done = self.transact(operation, &asked).await?;
        if done.succeeded { Ok(Version(done.header.revision)) } else { Err(other()) }
    }

    async fn delete_if(&self, key: &str, version: Version) -> Result<()> {
        let operation = "cluster.delete_if";
        let other = || ProviderError::conflict(operation, Conflict::Version);
        let name = encoded(self.key(key));
        let asked = json!({
            "compare": [{"key": name, "target": "MOD", "result": "EQUAL", "mod_revision": revision(version).ok_or_else(other)?}],
            "success": [{"request_delete_range": {"key": name}}],
        });
        let done = self.transact(operation, &asked).await?;
        if done.succeeded { Ok(()) } else { Err(other()) }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        let operation = "cluster.list";
        let from = self.key(prefix);
        let range = json!({"key": encoded(&from), "range_end": encoded(end_of(from.as_bytes()))});
        let answer = self.gateway.call(operation, "/v3/kv/range", &range, Effect::Reads).await;
        let found: Ranged = answer.map_err(|failure| failure.into_error(operation))?;
        let ours = self.key("").len();
        let entry = |found: answer::KeyValue| {
            let key = found.key.get(ours..).and_then(|key| std::str::from_utf8(key).ok());
            let strange =
                || ProviderError::new(ErrorKind::Corrupt, operation, "a key below the prefix is not ours");
            Ok(Entry {
                key: key.ok_or_else(strange)?.to_owned(),
                value: found.value.into(),
                version: Version(found.mod_revision),
                session: (found.lease > 0).then(|| SessionId::new(found.lease.to_string())),
            })
        };
        found.kvs.into_iter().map(entry).collect()
    }

    async fn watch(&self, prefix: &str) -> Result<Box<dyn Watch>> {
        let from = self.key(prefix).into_bytes();
        let end = end_of(&from);
        Ok(Box::new(EtcdWatch(Follower::begin(self.gateway.clone(), "cluster.watch", from, end).await?)))
    }
}

struct EtcdWatch(Follower);

#[async_trait]
impl Watch for EtcdWatch {
    async fn next(&mut self) -> Result<Seen> {
        match self.0.next().await? {
            Followed::Values(_) => Ok(Seen::Changed),
            Followed::Compacted => Ok(Seen::LostTrack),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        assert_eq!(end_of(b"a/"), b"a0");
        assert_eq!(end_of(&[1, 255, 255]), [2]);
        assert_eq!(end_of(&[255]), [0], "to the end");
        assert_eq!(revision(Version(0)), None);
        assert_eq!(revision(Version(u64::MAX)), None);
        assert_eq!(revision(Version(7)), Some("7".to_owned()));
    }
}
