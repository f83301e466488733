//! Cluster: how nodes find each other and agree on who does what. Sessions with a time to live, keys that may belong to
//! one, writes that depend on a version, and watches that say "look".
//!
//! Everything else (who is a member, who leads, which node has which unit) is built above this contract, once, in
//! `flare_model::cluster`. An engine knows nothing of it.
//!
//! No wall clock is part of this. The coordinator measures sessions by its own clock, a node by its own, and the two are
//! never compared: a node counts from *before* it asked, so that its deadline is over first ([`Session`]).

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
pub use flare_model::cluster::{SessionId, Version};

use crate::error::Result;

/// What the coordinator gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The new session.
    pub session: SessionId,
    /// It lives at least so long, counted from a moment after the request arrived. It may be longer than was asked for,
    /// never shorter.
    pub ttl: Duration,
}

/// A key and what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub key: String,
    /// What was put.
    pub value: Bytes,
    /// Of its last change.
    pub version: Version,
    /// The session with which it goes.
    pub session: Option<SessionId>,
}

/// What a watch says. There is nothing in it on purpose: whoever hears it lists, and what is listed is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Something below the prefix changed since the last word.
    Changed,
    /// Something may have changed, and nobody can tell any more.
    LostTrack,
}

/// The coordinator of a cluster.
///
/// Errors: `Unavailable` is nothing written, `Unknown` may be written, now or a little later (the answer was lost, and the
/// request may still be under way): the caller lists before it does anything that depends on it. A call that was
/// dropped midway is like one answered with `Unknown`.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// Begins a session for an owner. It ends when it is not renewed for its time to live, or by [`end`](Cluster::end);
    /// never earlier by what happens to the caller's connection, and not by a restart of the coordinator (which may make
    /// it last longer). `Unknown`: a session may have been begun that nobody knows; it ends by itself. `Unsupported`: a time to
    /// live that the engine cannot give.
    async fn grant(&self, owner: &str, ttl: Duration) -> Result<Granted>;

    /// Renews a session for its whole time to live, counted from when this arrives, and answers that time. Both the session
    /// and its owner are named, and both have to agree. `Fenced`: there is no such session of this owner, or not any more;
    /// this is so for ever, and its keys are gone or about to go. `Unavailable` and `Unknown` say nothing: the session ends
    /// when it would have.
    async fn renew(&self, session: &SessionId, owner: &str) -> Result<Duration>;

    /// Ends a session, and its keys with it, as one. One that has ended is fine. `Fenced` when it is another owner's.
    async fn end(&self, session: &SessionId, owner: &str) -> Result<()>;

    /// For how long a session lasts yet if it is not renewed, by the clock of the coordinator, and rounded up; nothing when it is
    /// over. For people to look at: nobody acts by the session of another.
    async fn left(&self, session: &SessionId) -> Result<Option<Duration>>;

    /// Creates a key, in a session or on its own, and answers its version. Of many who try at once one succeeds.
    /// [`Conflict::Taken`](crate::Conflict::Taken) when the key is there, also with this very value: whoever repeats after
    /// `Unknown` lists first and knows its own by the session and the value. `Fenced` when the session has ended, at whatever moment
    /// the request arrives: nothing is written then.
    async fn put_if_absent(&self, key: &str, value: Bytes, session: Option<&SessionId>) -> Result<Version>;

    /// Replaces the value of a key that has this version, and answers the new version. The key stays in its session, or
    /// on its own. [`Conflict::Version`](crate::Conflict::Version) when its version is another one, or it is gone: nothing is written.
    async fn put_if(&self, key: &str, version: Version, value: Bytes) -> Result<Version>;

    /// Deletes a key that has this version. [`Conflict::Version`](crate::Conflict::Version) when its version is another one, or it is
    /// gone: nothing is deleted. A request that arrives late can therefore never delete what came after.
    async fn delete_if(&self, key: &str, version: Version) -> Result<()>;

    /// All keys that begin with the prefix, by name, as one state: with everything that was answered before this was
    /// asked, and nothing of sessions that have ended.
    async fn list(&self, prefix: &str) -> Result<Vec<Entry>>;

    /// Watches all keys that begin with the prefix. Of what changes after this was answered (a key that ends with its session
    /// included) the watch says something.
    async fn watch(&self, prefix: &str) -> Result<Box<dyn Watch>>;
}

/// A watch.
#[async_trait]
pub trait Watch: Send {
    /// Waits for a change. Changes close to each other may be one word. After [`Seen::LostTrack`] it watches on, from a
    /// moment before that was said. `Unavailable`: it cannot be followed at the moment; called again it goes on from where it was,
    /// and says `LostTrack` where that is not possible. A call that is dropped midway loses nothing. The caller lists from time
    /// to time all the same.
    async fn next(&mut self) -> Result<Seen>;
}

/// A session as its owner has it: the deadline is by the owner's own monotonic clock, counted from before the request that
/// was answered last was sent. So it is over before the coordinator's, as long as both clocks run alike; for what they
/// do not, the owner keeps a margin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    id: SessionId,
    owner: String,
    deadline: Duration,
}

impl Session {
    /// Begins a session. `now` tells the monotonic time of this process.
    pub async fn begin(
        cluster: &dyn Cluster,
        now: impl Fn() -> Duration,
        owner: &str,
        ttl: Duration,
    ) -> Result<Session> {
        let asked = now();
        let granted = cluster.grant(owner, ttl).await?;
        Ok(Session { id: granted.session, owner: owner.to_owned(), deadline: asked + granted.ttl })
    }

    /// Renews it. Whatever the answer is, or if there is none, the deadline never comes nearer by this, and without a good one
    /// it stays where it was.
    pub async fn renew(&mut self, cluster: &dyn Cluster, now: impl Fn() -> Duration) -> Result<()> {
        let asked = now();
        let ttl = cluster.renew(&self.id, &self.owner).await?;
        self.deadline = self.deadline.max(asked + ttl);
        Ok(())
    }

    /// Until when its keys are surely there.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Its name.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Whose it is.
    pub fn owner(&self) -> &str {
        &self.owner
    }
}
