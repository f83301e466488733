//! The lanes of a subscription go to other delivery threads, while it works.
//!
//! Each lane goes by itself: its thread begins nothing more of it; when nothing of it is in flight, the thread records
//! and lets go, the store is asked again, and the next thread takes over from there. So a document never has two attempts
//! open, and an attempt that hangs holds up its own lane and nothing else: all other lanes are served, before they go or
//! after.

use std::collections::BTreeMap;
use std::sync::Arc;

use flare_model::ids::SubscriptionNumber;
use flare_provider::Opened;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::oneshot;

use crate::journey::Journey;
use crate::journey::homes::Home;
use crate::journey::merge::Merge;
use crate::journey::subscriber::Standstill;
use crate::journey::subscriber::placement::Placement;
use crate::journey::thread::command::Command;
use crate::notification::compiled::Compiled;

/// Lanes as the store has them, and how their subscription stands.
pub struct Reopened {
    /// The epoch under which they are open now.
    pub epoch: u64,
    /// The settings.
    pub compiled: Arc<Compiled>,
    /// The feeds of the lanes.
    pub feeds: Vec<Opened>,
    /// Whether it may work.
    pub standstill: Standstill,
}

/// Resolves when nothing of a lane is in flight; without the lane, if its subscription is gone or the node stops.
type Draining<'a> = FuturesUnordered<std::pin::Pin<Box<dyn Future<Output = Option<u8>> + Send + 'a>>>;

impl Journey {
    /// Hands the lanes of a subscription to the threads that its settings say, and returns when all are there. `reopen`
    /// reads feeds of it again; `None` from it means that it is gone, and so does `None` from this.
    pub async fn rearrange<F: Future<Output = Option<Reopened>>>(
        &self,
        compiled: &Compiled,
        reopen: impl Fn(Vec<u8>) -> F,
    ) -> Option<()> {
        let home = self.homes.of(compiled.number)?;
        let to = compiled.placement(self.threads.len());
        let mut draining = self.begin_to_move(&home, compiled, to).await?;
        while let Some(drained) = draining.next().await {
            let mut lanes = vec![drained?];
            // Those that are ready by now go along.
            while let Some(Some(more)) = draining.next().now_or_never() {
                lanes.push(more?);
            }
            self.hand_over(&home, to, lanes, &reopen).await?;
        }
        let _gate = home.gate.write().await;
        home.has_moved(to);
        Some(())
    }

    /// Tells the threads what is about to happen, and has them drain the lanes that go.
    async fn begin_to_move(
        &self,
        home: &Arc<Home>,
        compiled: &Compiled,
        to: Placement,
    ) -> Option<Draining<'static>> {
        let number = compiled.number;
        let _gate = home.gate.write().await;
        if !self.homes.is_of(number, home) {
            return None;
        }
        let common = home.begins_to_move(to, compiled.spec.concurrency);
        for thread in home.owners() {
            let _ = self.threads[thread].send(Command::Place(to, common.clone())).await;
        }
        let draining = FuturesUnordered::new();
        let mut leaving = home.lanes();
        leaving.retain(|lane| home.thread_of(*lane) != Some(to.thread_of(*lane)));
        for (thread, lanes) in by_thread(leaving, |lane| home.thread_of(*lane)) {
            let mut drains = Vec::with_capacity(lanes.len());
            for lane in lanes {
                let (reply, drained) = oneshot::channel();
                drains.push((lane, reply));
                draining.push(async move { drained.await.ok().map(|()| lane) }.boxed());
            }
            let _ = self.threads[thread].send(Command::Drain(number, drains)).await;
        }
        Some(draining)
    }

    /// Drained lanes go from their threads to those that a spread says.
    async fn hand_over<F: Future<Output = Option<Reopened>>>(
        &self,
        home: &Arc<Home>,
        to: Placement,
        lanes: Vec<u8>,
        reopen: &impl Fn(Vec<u8>) -> F,
    ) -> Option<()> {
        let number: SubscriptionNumber = to.number;
        let _one_clock = self.handing_over.read().await;
        // Nobody is asked anything of it meanwhile, and it is not deleted.
        let _gate = home.gate.write().await;
        if !self.homes.is_of(number, home) {
            return None;
        }
        let mut released = Vec::new();
        for (thread, lanes) in by_thread(lanes.iter().copied(), |lane| home.thread_of(*lane)) {
            let (reply, gone) = oneshot::channel();
            let _ = self.threads[thread].send(Command::Release(number, lanes, reply)).await;
            released.push(gone);
        }
        let mut decision = None;
        for gone in released {
            decision = decision.merge(gone.await.ok()?);
        }
        let Reopened { epoch, compiled, feeds, standstill } = reopen(lanes.clone()).await?;
        for (thread, opened) in by_thread(feeds, |opened| Some(to.thread_of(opened.feed.lane))) {
            let (compiled, standstill, common) = (compiled.clone(), standstill.clone(), home.common());
            let (placement, decision) = (to, decision.clone());
            let fresh = false;
            let open =
                Command::Open { compiled, opened, epoch, standstill, fresh, placement, common, decision };
            let _ = self.threads[thread].send(open).await;
        }
        home.came(to, &lanes);
        Some(())
    }
}

fn by_thread<T>(
    all: impl IntoIterator<Item = T>,
    thread: impl Fn(&T) -> Option<usize>,
) -> BTreeMap<usize, Vec<T>> {
    let mut parts: BTreeMap<usize, Vec<T>> = BTreeMap::new();
    for one in all {
        if let Some(thread) = thread(&one) {
            parts.entry(thread).or_default().push(one);
        }
    }
    parts
}
