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
    /// are gone; at once where they are not here. What a thread has that was silenced meanwhile is cut.
    pub async fn close(&self, compiled: &Arc<Compiled>, lanes: &[u8]) {
        let Some(home) = self.homes.of(compiled.number) else { return };
        let threads: Vec<usize> = by_thread(&home, lanes).into_iter().map(|(thread, _)| thread).collect();
        tokio::select! {
            biased;
            () = self.finish(compiled, lanes) => {}
            () = self.until_silenced(&threads) => self.cut(compiled, lanes).await,
        }
    }

    async fn finish(&self, compiled: &Arc<Compiled>, lanes: &[u8]) {
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

    /// Stops some lanes at once: what is open is cut off, and nothing more is written. Returns when nothing of them runs; of a thread
    /// that was silenced nothing begins, and it hears of this when it goes on.
    pub async fn cut(&self, compiled: &Arc<Compiled>, lanes: &[u8]) {
        let number = compiled.number;
        let Some(home) = self.homes.of(number) else { return };
        // Not behind the gate: whoever drains these lanes may hold it, and waits for what is cut here.
        let mut silenced = false;
        for (thread, lanes) in by_thread(&home, lanes) {
            let (one, (reply, cut)) = ([thread], oneshot::channel());
            let told = async {
                let _ = self.threads[thread].send(Command::Cut(number, lanes.clone(), reply)).await;
                let _ = cut.await;
            };
            tokio::select! {
                biased;
                () = told => {}
                () = self.until_silenced(&one) => {
                    // It may have been told already, and is told again before it may begin anything.
                    self.unheard.lock().push((thread, number, lanes));
                    silenced = true;
                }
            }
        }
        // Whoever asks a silenced thread something holds the gate, for as long as that does not answer.
        let _gate = match silenced {
            true => home.gate.try_write().ok(),
            false => Some(home.gate.write().await),
        };
        if self.homes.is_of(number, &home) {
            self.let_go(compiled, &home, lanes).await;
        }
    }

    async fn until_silenced(&self, threads: &[usize]) {
        match &self.tenancy {
            Some(tenancy) => tenancy.until_silenced(threads).await,
            None => std::future::pending().await,
        }
    }

    /// Asks a delivery thread whether it is at work; nothing, if it has so much to do that it cannot be asked.
    pub fn ask_to_answer(&self, thread: usize) -> Option<oneshot::Receiver<()>> {
        let (reply, answer) = oneshot::channel();
        self.threads[thread].try_send(Command::Answer(reply)).ok().map(|()| answer)
    }

    /// A thread that was silenced answers: it hears what was cut meanwhile, and may begin something again.
    pub async fn hear_again(&self, thread: usize) {
        loop {
            let next = {
                let mut unheard = self.unheard.lock();
                let at = unheard.iter().position(|(silenced, ..)| *silenced == thread);
                if let (None, Some(tenancy)) = (at, &self.tenancy) {
                    // Whoever cuts from now on is heard himself.
                    tenancy.unsilence(thread);
                }
                at.map(|at| unheard.swap_remove(at))
            };
            let Some((_, number, lanes)) = next else { return };
            let (reply, cut) = oneshot::channel();
            let _ = self.threads[thread].send(Command::Cut(number, lanes, reply)).await;
            let _ = cut.await;
        }
    }

    /// Whether a delivery thread has some of these lanes.
    pub fn has_lanes_of(&self, thread: usize, number: SubscriptionNumber, lanes: &[u8]) -> bool {
        let home = self.homes.of(number);
        home.is_some_and(|home| lanes.iter().any(|lane| home.thread_of(*lane) == Some(thread)))
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
