//! A range of keys, followed from a revision on. Streams of etcd die silently, so one that has been silent for a while is opened
//! anew, from the revision that was seen last: nothing is missed, and nothing hangs for longer.
//!
//! etcd would answer a progress request, but over HTTP/1.1 its gateway answers only once a request has ended: nothing can be asked
//! on a stream that is open. So it is asked with the stream's beginning, and what comes back shows that the member has it. The revision in that
//! answer is not used: before etcd 3.4.25 it may be ahead of events that are still to come.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use flare_provider::{ErrorKind, ProviderError, Result};
use serde_json::json;
use tokio::time::{Sleep, sleep};

use crate::answer::{Ranged, Streamed, Watched, encoded};
use crate::connection::Lines;
use crate::gateway::{Effect, Gateway};

/// So many times the time that a member may take to answer, a stream may be silent.
const SILENCE: u32 = 5;

/// What is heard.
pub enum Followed {
    /// Keys changed; what those that were put have, in order.
    Values(Vec<Vec<u8>>),
    /// etcd has forgotten what was not seen yet.
    Compacted,
}

pub struct Follower {
    gateway: Arc<Gateway>,
    operation: &'static str,
    key: Vec<u8>,
    end: Vec<u8>,
    /// Everything before it was seen.
    from: u64,
    stream: Option<Stream>,
}

struct Stream {
    member: usize,
    lines: Lines,
    /// It has said something.
    lives: bool,
    /// Until when it may be silent, whoever waits meanwhile.
    silence: Pin<Box<Sleep>>,
}

impl Follower {
    /// Follows from now on: what is answered after this is seen.
    pub async fn begin(
        gateway: Arc<Gateway>,
        operation: &'static str,
        key: Vec<u8>,
        end: Vec<u8>,
    ) -> Result<Follower> {
        let range = json!({"key": encoded(&key), "count_only": true});
        let answer = gateway.call(operation, "/v3/kv/range", &range, Effect::Reads).await;
        let now: Ranged = answer.map_err(|failure| failure.into_error(operation))?;
        Ok(Follower { gateway, operation, key, end, from: now.header.revision + 1, stream: None })
    }

    async fn open(&mut self) -> Result<()> {
        if self.gateway.config().login.is_some() {
            // A stream does not say that the token is old in a way that could be relied on; a question does, and then there is a
            // new one.
            let range = json!({"key": encoded(&self.key), "count_only": true});
            let answer =
                self.gateway.call::<Ranged>(self.operation, "/v3/kv/range", &range, Effect::Reads).await;
            answer.map_err(|failure| failure.into_error(self.operation))?;
        }
        let create = json!({"create_request": {
            "key": encoded(&self.key),
            "range_end": encoded(&self.end),
            "start_revision": self.from.to_string(),
        }});
        let body = Bytes::from(format!("{create}{}", json!({"progress_request": {}})));
        let (member, lines) = self.gateway.stream(self.operation, "/v3/watch", body).await?;
        self.stream = Some(Stream {
            member,
            lines,
            lives: false,
            silence: Box::pin(sleep(self.gateway.config().timeout)),
        });
        Ok(())
    }

    /// Waits for something to happen. A call that is dropped loses nothing.
    pub async fn next(&mut self) -> Result<Followed> {
        let patience = self.gateway.config().timeout;
        // Each member may fail once before the caller hears of it.
        let mut failures = self.gateway.config().endpoints.len();
        loop {
            if self.stream.is_none() {
                self.open().await?;
            }
            let Some(stream) = &mut self.stream else { continue };
            let heard = tokio::select! {
                biased;
                heard = stream.lines.next() => Some(heard),
                () = stream.silence.as_mut() => None,
            };
            let why = match heard {
                Some(Ok(Some(line))) => {
                    stream.lives = true;
                    stream.silence = Box::pin(sleep(patience * SILENCE));
                    match serde_json::from_slice(&line) {
                        Ok(Streamed::Result(watched)) => match self.heard(watched) {
                            Some(followed) => return Ok(followed),
                            None if self.stream.is_some() => continue,
                            None => "etcd ended the watch".to_owned(),
                        },
                        Ok(Streamed::Error(error)) => error.to_string(),
                        Err(error) => format!("etcd said what is no answer: {error}"),
                    }
                }
                Some(Ok(None)) => "the stream ended".to_owned(),
                Some(Err(broken)) => format!("{broken:?}"),
                None if stream.lives => {
                    self.stream = None;
                    continue;
                }
                None => "no sign of life came".to_owned(),
            };
            if let Some(stream) = self.stream.take() {
                self.gateway.leave(stream.member);
            }
            failures = failures.saturating_sub(1);
            if failures == 0 {
                return Err(ProviderError::new(ErrorKind::Unavailable, self.operation, why));
            }
        }
    }

    fn heard(&mut self, watched: Watched) -> Option<Followed> {
        if watched.canceled {
            self.stream = None;
            if watched.compact_revision > 0 {
                self.from = self.from.max(watched.compact_revision);
                return Some(Followed::Compacted);
            }
            return None;
        }
        let last = watched.events.iter().map(|event| event.kv.mod_revision).max()?;
        self.from = self.from.max(last + 1);
        Some(Followed::Values(watched.events.into_iter().map(|event| event.kv.value).collect()))
    }
}
