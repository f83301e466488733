//! The connection that listens. It only reads, so nothing else would notice that its server is gone: it pings. And it may be that
//! nothing is ever heard on it, because a pooler gives each transaction another connection: so it notifies itself
//! in the beginning, from another one. Where that is not heard it says so, and looking from time to time has to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flare_provider::{Heard, Result};
use tokio::sync::{Notify, broadcast, watch};

use super::ringing;
use crate::connect::{Connector, Session};
use crate::engine::Runner;
use crate::error::WorkError;
use crate::pool::Borrowed;

const OPERATION: &str = "doorbell.listen";

/// How long it takes at most until a notification of one's own is heard.
const PROBE: Duration = Duration::from_secs(2);

/// Where nothing was heard it is tried again so late.
const AGAIN: Duration = Duration::from_secs(60);

/// Whether anything can be heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hearing {
    /// It was not tried yet.
    NotYet,
    /// What is rung is heard.
    Listens,
    /// Nothing is heard: it is looked from time to time.
    Polls,
}

/// What listens.
pub(super) struct Ear {
    pub connector: Arc<Connector>,
    pub runner: Runner,
    pub channel: Arc<str>,
    pub rings: broadcast::Sender<Heard>,
    /// Rung when a key may have changed.
    pub look: Arc<Notify>,
    pub hearing: watch::Sender<Hearing>,
    pub poll_interval: Duration,
    pub ping: Duration,
}

/// How a try to listen ended.
enum Tried {
    Listens(Box<Session>, Arc<Notify>),
    /// The server is there, and nothing is heard.
    Deaf,
    /// It cannot be reached.
    Away,
}

impl Ear {
    /// Until the last participant is dropped.
    pub async fn run(self) {
        loop {
            let again = match self.listen().await {
                Tried::Listens(session, ended) => {
                    if self.hearing.send_replace(Hearing::Listens) != Hearing::NotYet {
                        // Nobody knows what was rung meanwhile.
                        self.missed();
                    }
                    let why = self.attend(&session, &ended).await;
                    tracing::warn!(why, "the connection that listens has ended, it is made anew");
                    self.hearing.send_replace(Hearing::Polls);
                    continue;
                }
                Tried::Deaf => {
                    if self.hearing.send_replace(Hearing::Polls) != Hearing::Polls {
                        tracing::warn!(
                            poll_interval = ?self.poll_interval,
                            "notifications of PostgreSQL are not heard, most likely because of a pooler between that gives \
                             each transaction another connection: nodes look for changes from time to time instead"
                        );
                    }
                    AGAIN
                }
                Tried::Away => self.poll_interval,
            };
            let mut waited = Duration::ZERO;
            while waited < again {
                tokio::time::sleep(self.poll_interval).await;
                waited += self.poll_interval;
                self.missed();
            }
        }
    }

    fn missed(&self) {
        // An error says that nobody listens, which is fine.
        let _nobody = self.rings.send(Heard::Missed);
        self.look.notify_one();
    }

    async fn listen(&self) -> Tried {
        static PROBES: AtomicU64 = AtomicU64::new(0);
        let probe: Arc<str> =
            format!("p{}-{}", std::process::id(), PROBES.fetch_add(1, Ordering::Relaxed)).into();
        let (came_back, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let heard = {
            let (probe, came_back) = (probe.clone(), came_back.clone());
            let (rings, look) = (self.rings.clone(), self.look.clone());
            let ended = ended.clone();
            move |payload: Option<&str>| {
                let Some(payload) = payload else { return ended.notify_one() };
                match payload.as_bytes().first() {
                    Some(b'p') if *payload == *probe => came_back.notify_one(),
                    Some(b'p') => {}
                    Some(b'k') => look.notify_one(),
                    _ => {
                        let heard = ringing::read(payload).map_or(Heard::Missed, Heard::Rings);
                        let _nobody = rings.send(heard);
                    }
                }
            }
        };
        let Ok(session) = self.connector.connect_to_listen(Arc::new(heard)).await else { return Tried::Away };
        if session.client.batch_execute(&format!("LISTEN {}", self.channel)).await.is_err() {
            return Tried::Away;
        }
        if self.notify(probe).await.is_err() {
            return Tried::Away;
        }
        match tokio::time::timeout(PROBE, came_back.notified()).await {
            Ok(()) => Tried::Listens(Box::new(session), ended),
            Err(_elapsed) if session.client.is_closed() => Tried::Away,
            Err(_elapsed) => Tried::Deaf,
        }
    }

    /// From another connection: what is notified on this one would come back even through a pooler.
    async fn notify(&self, payload: Arc<str>) -> Result<()> {
        let channel = self.channel.clone();
        let notify = move |session: Arc<Borrowed>| async move {
            let notify = session.prepare("SELECT pg_notify($1, $2)").await?;
            session.client.query(&notify, &[&&*channel, &&*payload]).await?;
            Ok::<(), WorkError>(())
        };
        self.runner.write(OPERATION, notify).await
    }

    /// Pings until that fails, or the session has ended; answers why.
    async fn attend(&self, session: &Session, ended: &Notify) -> String {
        loop {
            tokio::select! {
                () = ended.notified() => return "it was closed".to_owned(),
                () = tokio::time::sleep(self.ping) => {}
            }
            match tokio::time::timeout(self.ping, session.client.batch_execute("")).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error.to_string(),
                Err(_elapsed) => return format!("no answer within {:?}", self.ping),
            }
        }
    }
}
