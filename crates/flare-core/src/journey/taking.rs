//! Lanes of a subscription come to this node, and leave it: opened under an epoch, drained and let go, or cut at once.
//!
//! A node by itself opens all lanes of each subscription and lets none go. One in a cluster has those of its units.

use std::sync::Arc;

use flare_model::ids::SubscriptionNumber;
use flare_model::subscription::RateLimit;
use flare_provider::Opened;
use futures_util::future::join_all;
use tokio::sync::oneshot;

use crate::journey::Journey;
use crate::journey::homes::Home;
use crate::journey::subscriber::Standstill;
use crate::journey::thread::command::Command;
use crate::notification::compiled::Compiled;

/// Lanes that come to this node.
pub struct Taken {
    /// As found.
    pub opened: Vec<Opened>,
    /// Under which they were opened.
    pub epoch: u64,
    /// Whether their subscription may work.
    pub standstill: Standstill,
    /// It was created just now.
    pub fresh: bool,
}

impl Journey {
    /// Hands lanes of a subscription to the threads that serve them from now on.
    pub async fn open(&self, compiled: &Arc<Compiled>, taken: Taken) {
        let Taken { opened, epoch, standstill, fresh } = taken;
        let placement = compiled.placement(self.threads.len());
        let home = self.homes.settle(placement, compiled.resource.view.lanes);
        let _gate = home.gate.write().await;
        let lanes: Vec<u8> = opened.iter().map(|feed| feed.feed.lane).collect();
        home.came(placement, &lanes);
        let compiled = part_of(compiled, &home);
        let common = home.common_for(compiled.spec.concurrency);
        let mut parts: Vec<Vec<Opened>> = self.threads.iter().map(|_| Vec::new()).collect();
        for feed in opened {
            parts[placement.thread_of(feed.feed.lane)].push(feed);
        }
        for (thread, opened) in parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()) {
            let (compiled, standstill, common) = (compiled.clone(), standstill.clone(), common.clone());
            let decision = None;
            let open =
                Command::Open { compiled, opened, epoch, standstill, fresh, placement, common, decision };
            // A thread that has stopped takes no commands; the node is stopping.
            let _ = self.threads[thread].send(open).await;
        }
        self.tell_part(&compiled, &home, lanes.len()).await;
    }

    /// Other settings hold for a subscription from now on.
    pub async fn replace(&self, compiled: &Arc<Compiled>) {
        let Some(home) = self.homes.of(compiled.number) else { return };
        let _gate = home.gate.read().await;
        let compiled = part_of(compiled, &home);
        for thread in home.owners() {
            let _ = self.threads[thread].send(Command::Replace(compiled.clone())).await;
        }
    }

    /// Finishes what is in flight of some lanes, makes durable what is known of them, and lets them go. Returns when they
    /// are gone; at once where they are not here.
    pub async fn close(&self, compiled: &Arc<Compiled>, lanes: &[u8]) {
        let number = compiled.number;
        let Some(home) = self.homes.of(number) else { return };
        let mut drained = Vec::new();
        {
            let _gate = home.gate.read().await;
            for (thread, lanes) in by_thread(&home, lanes) {
                let mut drains = Vec::with_capacity(lanes.len());
                for lane in lanes {
                    let (reply, done) = oneshot::channel();
                    drains.push((lane, reply));
                    drained.push(done);
                }
                let _ = self.threads[thread].send(Command::Drain(number, drains)).await;
            }
        }
        // One that is cut or deleted meanwhile gives no answer.
        join_all(drained).await;
        let _gate = home.gate.write().await;
        if !self.homes.is_of(number, &home) {
            return;
        }
        for (thread, lanes) in by_thread(&home, lanes) {
            let (reply, gone) = oneshot::channel();
            let _ = self.threads[thread].send(Command::Release(number, lanes, reply)).await;
            let _ = gone.await;
        }
        self.let_go(compiled, &home, lanes).await;
    }

    /// Stops some lanes at once: what is open is cut off, and nothing more is written. Returns when nothing of them runs.
    pub async fn cut(&self, compiled: &Arc<Compiled>, lanes: &[u8]) {
        let number = compiled.number;
        let Some(home) = self.homes.of(number) else { return };
        // Not behind the gate: whoever drains these lanes may hold it, and waits for what is cut here.
        for (thread, lanes) in by_thread(&home, lanes) {
            let (reply, cut) = oneshot::channel();
            let _ = self.threads[thread].send(Command::Cut(number, lanes, reply)).await;
            let _ = cut.await;
        }
        let _gate = home.gate.write().await;
        if self.homes.is_of(number, &home) {
            self.let_go(compiled, &home, lanes).await;
        }
    }

    /// Lanes are gone from their threads; the caller has the gate.
    async fn let_go(&self, compiled: &Arc<Compiled>, home: &Arc<Home>, lanes: &[u8]) {
        if home.left(lanes) {
            self.homes.forget(compiled.number);
        } else {
            let compiled = part_of(compiled, home);
            self.tell_part(&compiled, home, 0).await;
        }
    }

    /// Where lanes are on several nodes, what this one may do changes with how many it has.
    async fn tell_part(&self, compiled: &Arc<Compiled>, home: &Home, came: usize) {
        if compiled.shards() > 1 && home.lanes().len() > came {
            for thread in home.owners() {
                let _ = self.threads[thread].send(Command::Replace(compiled.clone())).await;
            }
        }
    }

    /// The lanes of a subscription that are served here.
    pub fn lanes_here(&self, number: SubscriptionNumber) -> Vec<u8> {
        self.homes.of(number).map(|home| home.lanes()).unwrap_or_default()
    }

    /// Whether all lanes of a subscription are served here.
    pub fn serves_all(&self, number: SubscriptionNumber) -> bool {
        self.homes.of(number).is_some_and(|home| home.is_whole())
    }

    /// All subscriptions that have lanes here.
    pub fn served(&self) -> Vec<SubscriptionNumber> {
        self.homes.all()
    }
}

fn by_thread(home: &Home, lanes: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let mut parts: Vec<(usize, Vec<u8>)> = Vec::new();
    for lane in lanes {
        let Some(thread) = home.thread_of(*lane) else { continue };
        match parts.iter_mut().find(|(known, _)| *known == thread) {
            Some((_, lanes)) => lanes.push(*lane),
            None => parts.push((thread, vec![*lane])),
        }
    }
    parts
}

/// A subscription with the part of its concurrency and its rate that falls to the shards that are here: each shard has its
/// own, so that nodes share no counter.
fn part_of(compiled: &Arc<Compiled>, home: &Home) -> Arc<Compiled> {
    if compiled.shards() == 1 || home.is_whole() {
        return compiled.clone();
    }
    let shards = compiled.shards();
    let mut here: Vec<u32> = home.lanes().into_iter().map(|lane| u32::from(lane) % shards).collect();
    here.sort_unstable();
    here.dedup();
    let part = |total: u32| {
        let (each, over) = (total / shards, total % shards);
        here.iter().map(|shard| each + u32::from(*shard < over)).sum::<u32>().max(1)
    };
    let concurrency = part(compiled.spec.concurrency);
    let rate_limit = compiled.spec.rate_limit.map(|limit| RateLimit {
        quantity: part(limit.quantity),
        burst: limit.burst.map(part),
        ..limit
    });
    Arc::new(compiled.within(concurrency, rate_limit))
}
