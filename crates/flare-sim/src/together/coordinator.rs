//! The coordinator as one node meets it: calls come in, and reach the coordinator in memory, or do not, late, or twice; what
//! it answers comes back, or does not. A request is on its way by itself: it arrives also after its sender gave it up.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_promises::dice::Dice;
use flare_provider::memory::{MemoryCluster, Now};
use flare_provider::{
    Cluster, Entry, ErrorKind, Granted, ProviderError, Result, Seen, SessionId, Version, Watch,
};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::post::Post;
use super::ways::{Direction, End, Ways};
use crate::stage::Stage;

/// So long a client of the coordinator waits for an answer.
const PATIENCE: Duration = Duration::from_secs(1);

const RENEWS: &str = "cluster.renew";

/// The coordinator itself.
pub struct Coordinator {
    now: Now,
    inside: Mutex<Inside>,
}

struct Inside {
    cluster: MemoryCluster,
    /// It answers nobody, for so many reasons.
    down: u64,
    /// How often it was set up anew.
    restored: u64,
    /// How much goes wrong between it and nodes, of a hundred requests, and how long requests are under way that take
    /// long.
    trouble: u64,
    long: u64,
    /// The next renewal of this node takes so long, and rings when it is sent.
    held_up: Option<(String, Duration, Arc<Notify>)>,
    dice: Dice,
}

/// What becomes of a request.
struct Fate {
    there: Option<Duration>,
    back: Option<Duration>,
    /// It arrives once more.
    twice: Option<Duration>,
}

impl Coordinator {
    pub fn new(now: Now, dice: Dice, trouble: u64, long: u64) -> Arc<Coordinator> {
        let cluster = MemoryCluster::new(now.clone());
        let inside = Inside { cluster, down: 0, restored: 0, trouble, long, held_up: None, dice };
        Arc::new(Coordinator { now, inside: Mutex::new(inside) })
    }

    /// It answers nobody any more, or everybody again.
    pub fn goes_down(&self, down: bool) {
        let inside = &mut *self.inside.lock();
        inside.down = if down { inside.down + 1 } else { inside.down.saturating_sub(1) };
    }

    /// Another one is in its place, which knows nothing: a backup from before the first node, or a new one.
    pub fn is_restored(&self) {
        let mut inside = self.inside.lock();
        inside.cluster = MemoryCluster::new(self.now.clone());
        inside.restored += 1;
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        let mut inside = self.inside.lock();
        (inside.down, inside.trouble) = (0, 0);
    }

    /// The next renewal of a node takes so long to arrive. Answers what rings when it is sent.
    pub fn holds_up(&self, node: String, late: Duration) -> Arc<Notify> {
        let sent = Arc::new(Notify::new());
        self.inside.lock().held_up = Some((node, late, sent.clone()));
        sent
    }

    fn fate(&self, ways: &Ways, node: &str, operation: &str) -> Fate {
        let inside = &mut *self.inside.lock();
        let held_up = |(by, ..): &mut (String, Duration, Arc<Notify>)| by == node && operation == RENEWS;
        if let Some((_, late, sent)) = inside.held_up.take_if(held_up) {
            sent.notify_one();
            return Fate { there: Some(late), back: Some(Duration::ZERO), twice: None };
        }
        let (trouble, long) = (inside.trouble, inside.long);
        let dice = &mut inside.dice;
        let mut some = |most: u64| Duration::from_millis(dice.below(most));
        let (there, back, late, again) = (some(4), some(4), some(long), some(long));
        let roll = dice.below(100);
        // Of what goes wrong most is late, some is lost, and a little comes twice.
        let mut fate = match roll {
            _ if roll >= trouble => Fate { there: Some(there), back: Some(back), twice: None },
            _ if roll < trouble / 4 => Fate { there: Some(late), back: Some(back), twice: None },
            _ if roll < trouble / 2 => Fate { there: Some(there), back: Some(late), twice: None },
            _ if roll < trouble * 2 / 3 => Fate { there: None, back: None, twice: None },
            _ if roll < trouble * 5 / 6 => Fate { there: Some(there), back: None, twice: None },
            _ => Fate { there: Some(there), back: Some(back), twice: Some(again) },
        };
        if ways.is_cut(End::Coordinator, Direction::Out) || inside.down > 0 {
            fate = Fate { there: None, back: None, twice: None };
        }
        if ways.is_cut(End::Coordinator, Direction::Back) {
            fate.back = None;
        }
        fate
    }

    /// The one that is there now; nothing while it is down.
    fn there(&self) -> Option<MemoryCluster> {
        let inside = self.inside.lock();
        (inside.down == 0).then(|| inside.cluster.clone())
    }

    fn generation(&self) -> u64 {
        self.inside.lock().restored
    }
}

/// The way of one node to the coordinator.
pub struct Line {
    pub coordinator: Arc<Coordinator>,
    pub node: String,
    pub ways: Ways,
    /// Of a thousand milliseconds the node's machine counts so many too many.
    pub drift: i32,
    pub post: Post,
    pub stage: Weak<Stage>,
}

impl Line {
    /// A duration that the coordinator means, as one that lasts as long by the clock of the node would be measured by all
    /// others. Nothing else of the coordinator's is a time.
    fn by_the_nodes_clock(&self, duration: Duration) -> Duration {
        duration.mul_f64(1000.0 / f64::from(1000 + self.drift))
    }

    async fn call<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        operation: &'static str,
        ask: impl Fn(MemoryCluster) -> F + Send + Sync + 'static,
    ) -> Result<T> {
        let fate = self.coordinator.fate(&self.ways, &self.node, operation);
        if let Some(stage) = self.stage.upgrade() {
            let Fate { there, back, twice } = &fate;
            stage.note(|| format!("{}: {operation} {there:?} {back:?} {twice:?}", self.node));
        }
        let (answer, answered) = oneshot::channel();
        if let Some(there) = fate.there {
            let (coordinator, ways) = (self.coordinator.clone(), self.ways.clone());
            let message = async move {
                tokio::time::sleep(there).await;
                let Some(cluster) = coordinator.there() else { return };
                let done = ask(cluster).await;
                if let Some(back) = fate.back {
                    tokio::time::sleep(back).await;
                    if !ways.is_cut(End::Coordinator, Direction::Back) {
                        let _nobody_waits = answer.send(done);
                    }
                }
                if let (Some(again), Some(cluster)) = (fate.twice, coordinator.there()) {
                    tokio::time::sleep(again).await;
                    drop(ask(cluster).await);
                }
            };
            self.post.carry(message.boxed());
        }
        let answered = async {
            match answered.await {
                Ok(done) => done,
                // Nobody will answer, and nobody says so.
                Err(_) => std::future::pending().await,
            }
        };
        let patient = tokio::time::timeout(PATIENCE, answered).await;
        patient.unwrap_or_else(|_| Err(ProviderError::new(ErrorKind::Unknown, operation, "no answer came")))
    }
}

#[async_trait]
impl Cluster for Line {
    async fn grant(&self, owner: &str, ttl: Duration) -> Result<Granted> {
        let owner = owner.to_owned();
        self.call("cluster.grant", move |cluster| {
            let owner = owner.clone();
            async move { cluster.grant(&owner, ttl).await }
        })
        .await
        .map(|granted| Granted { ttl: self.by_the_nodes_clock(granted.ttl), ..granted })
    }

    async fn renew(&self, session: &SessionId, owner: &str) -> Result<Duration> {
        let (session, owner) = (session.clone(), owner.to_owned());
        self.call(RENEWS, move |cluster| {
            let (session, owner) = (session.clone(), owner.clone());
            async move { cluster.renew(&session, &owner).await }
        })
        .await
        .map(|ttl| self.by_the_nodes_clock(ttl))
    }

    async fn end(&self, session: &SessionId, owner: &str) -> Result<()> {
        let (session, owner) = (session.clone(), owner.to_owned());
        self.call("cluster.end", move |cluster| {
            let (session, owner) = (session.clone(), owner.clone());
            async move { cluster.end(&session, &owner).await }
        })
        .await
    }

    async fn left(&self, session: &SessionId) -> Result<Option<Duration>> {
        let session = session.clone();
        self.call("cluster.left", move |cluster| {
            let session = session.clone();
            async move { cluster.left(&session).await }
        })
        .await
    }

    async fn put_if_absent(&self, key: &str, value: Bytes, session: Option<&SessionId>) -> Result<Version> {
        let (key, session) = (key.to_owned(), session.cloned());
        self.call("cluster.put_if_absent", move |cluster| {
            let (key, value, session) = (key.clone(), value.clone(), session.clone());
            async move { cluster.put_if_absent(&key, value, session.as_ref()).await }
        })
        .await
    }

    async fn put_if(&self, key: &str, version: Version, value: Bytes) -> Result<Version> {
        let key = key.to_owned();
        self.call("cluster.put_if", move |cluster| {
            let (key, value) = (key.clone(), value.clone());
            async move { cluster.put_if(&key, version, value).await }
        })
        .await
    }

    async fn delete_if(&self, key: &str, version: Version) -> Result<()> {
        let key = key.to_owned();
        self.call("cluster.delete_if", move |cluster| {
            let key = key.clone();
            async move { cluster.delete_if(&key, version).await }
        })
        .await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        let prefix = prefix.to_owned();
        self.call("cluster.list", move |cluster| {
            let prefix = prefix.clone();
            async move { cluster.list(&prefix).await }
        })
        .await
    }

    async fn watch(&self, prefix: &str) -> Result<Box<dyn Watch>> {
        let prefix = prefix.to_owned();
        let generation = self.coordinator.generation();
        let watch = self
            .call("cluster.watch", move |cluster| {
                let prefix = prefix.clone();
                async move { cluster.watch(&prefix).await }
            })
            .await?;
        let (coordinator, ways) = (self.coordinator.clone(), self.ways.clone());
        Ok(Box::new(Watching { watch, coordinator, ways, generation }))
    }
}

/// A watch whose words may be lost.
struct Watching {
    watch: Box<dyn Watch>,
    coordinator: Arc<Coordinator>,
    ways: Ways,
    generation: u64,
}

/// So often a watch looks whether its coordinator is still there.
const LOOK: Duration = Duration::from_secs(1);

#[async_trait]
impl Watch for Watching {
    async fn next(&mut self) -> Result<Seen> {
        loop {
            let seen = tokio::time::timeout(LOOK, self.watch.next()).await;
            if self.coordinator.generation() != self.generation {
                let gone = "another coordinator is in its place";
                return Err(ProviderError::new(ErrorKind::Unavailable, "cluster.watch", gone));
            }
            if let Ok(seen) = seen {
                let fate = self.coordinator.fate(&self.ways, "", "cluster.watch");
                if let Some(back) = fate.back {
                    tokio::time::sleep(back).await;
                    return seen;
                }
            }
        }
    }
}
