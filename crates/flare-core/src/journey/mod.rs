//! The journey of a change: accept → (one durable commit) → follow → spread → deliver → settle.
//!
//! `accept` runs on the API's threads; the engine's thread commits and calls `log::tail` (follow); each delivery thread
//! (`thread`, over a `worker`) owns a part of the subscriptions: `spreading` says who is next, `reading` and `sending`
//! deliver, `settling` ends it. Everything between threads is a shared tail, a bell, or a small command.
//!
//! Knowledge goes one way, from `thread` down to `permits`: ARCHITECTURE.md has the order, and a test holds it.

pub mod accept;
mod asking;
mod bell;
mod connection;
mod homes;
mod log;
mod merge;
pub mod passive;
mod permits;
mod plan;
mod pulse;
mod reading;
mod rearrange;
mod report;
mod sending;
mod settling;
mod spreading;
mod subscriber;
mod taking;
mod tenancy;
#[cfg(test)]
mod testing;
mod thread;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use flare_model::document::Document;
use flare_model::ids::{LaneId, Ordinal, Seq, SubscriptionId, SubscriptionNumber};
use flare_model::time::Timestamp;
use flare_provider::{Newest, ProviderError};
use tokio::sync::{mpsc, oneshot};

pub use asking::census::{Ail, Found, RECENT_ERROR};
pub use asking::documents::{KnownOfDocuments, ListOwed, Owed, OwedOfLane};
pub use asking::needs::{RevisionsNeeded, TombstonesNeeded};
pub use asking::notable::{Notable, NotableOnes};
pub use asking::progress::{Lagging, Progress};
pub use connection::{Dialler, Hands, Pipe, ReadLimits};
pub use plan::Plan;
pub use pulse::Pulse;
pub use rearrange::Reopened;
pub use report::{Event, Report};
pub use sending::trial::{Trial, Tried};
pub use subscriber::Standstill;
pub use subscriber::decision::Decision;
pub use taking::Taken;
pub use tenancy::{Lost, Tenancy};
pub use thread::command::{AskedFor, Command, Requested};
pub use thread::spawn::Threads;
pub use worker::WorkerLimits;
pub use worker::breaker::BreakerSettings;

use crate::door::Clock;
use crate::epoch::Epoch;
use crate::notification::ending::Answer;
use crate::notification::host::HostKey;
use crate::observe::Observe;
use crate::steps;
use asking::census::Census;
use bell::Bell;
use homes::Homes;
use log::pages::Pages;
use log::tail::Tails;
use merge::Merge;
use permits::caps::Caps;
use sending::errand::Errand;
use thread::spawn::Running;
use worker::Tools;

/// Commands that may wait for a delivery thread. When full: whoever asks waits.
const COMMANDS: usize = 1024;

/// The running journey.
pub struct Journey {
    threads: Vec<mpsc::Sender<Command>>,
    handles: parking_lot::Mutex<Vec<Running>>,
    homes: Homes,
    pulses: Vec<Arc<Pulse>>,
    /// Lanes that were cut on threads that do not answer. Bound: the lanes that those have.
    unheard: parking_lot::Mutex<Vec<(usize, SubscriptionNumber, Vec<u8>)>>,
    /// What the cluster allows the node, if it is in one.
    tenancy: Option<Arc<Tenancy>>,
    report: Report,
    tails: Arc<Tails>,
    observe: Arc<Observe>,
    epoch: Epoch,
    /// What the threads were told of the clock, see [`Journey::clock_moved`].
    offset: AtomicI64,
    /// Held while lanes go from one thread to another, and while threads are told of the clock: what one has recorded is
    /// read by the next under the same clock.
    handing_over: tokio::sync::RwLock<()>,
}

impl Journey {
    /// Starts the delivery threads; they have no subscriptions yet. Nothing is written for that: a store that takes no
    /// writes for a while can still be read.
    pub async fn start(plan: Plan) -> Result<Journey, ProviderError> {
        let epoch = Epoch::new(plan.store.ledger.clone());
        let bells: Vec<Arc<Bell>> = (0..plan.threads).map(|_| Arc::default()).collect();
        let observe = Observe::new(plan.observe, epoch.number(), plan.threads);
        let caps = Arc::new(Caps::new(plan.connections, plan.connections_per_host, bells.clone()));
        let tails = Tails::new(bells.clone(), plan.tail_bytes, observe.counts().clone());
        let tails = tails.traced(plan.tracer.clone()).among_others(plan.tenancy.clone());
        let tails = Arc::new(tails);
        plan.store.documents.watch(tails.clone());
        let mut threads = Vec::new();
        let mut handles = Vec::new();
        let pulses: Vec<Arc<Pulse>> = (0..plan.threads).map(|_| Arc::default()).collect();
        for (index, bell) in bells.into_iter().enumerate() {
            let (sender, commands) = mpsc::channel(COMMANDS);
            let tools = Arc::new(Tools {
                clock: plan.clock.clone(),
                chance: plan.entropy.chance(),
                pages: Pages::new(
                    plan.store.documents.clone(),
                    plan.page_rows,
                    plan.page_bytes / plan.threads,
                ),
                ledger: plan.store.ledger.clone(),
                dialler: plan.dialler.clone(),
                tenancy: plan.tenancy.clone(),
                pulse: pulses[index].clone(),
                read_limits: plan.read_limits,
                limits: plan.limits,
                caps: caps.clone(),
                report: plan.report.clone(),
                desk: observe.desk(index),
                tracer: plan.tracer.clone(),
            });
            let running = plan.kind.spawn(index, tools, bell, tails.clone(), commands).map_err(|e| {
                ProviderError::new(flare_provider::ErrorKind::Internal, "journey.start", "no thread")
                    .because(e)
            })?;
            threads.push(sender);
            handles.push(running);
        }
        let handles = parking_lot::Mutex::new(handles);
        let homes = Homes::default();
        let offset = AtomicI64::new(steps::offset(&*plan.clock));
        let (report, tenancy) = (plan.report, plan.tenancy);
        let unheard = parking_lot::Mutex::default();
        let handing_over = tokio::sync::RwLock::default();
        Ok(Journey {
            threads,
            handles,
            homes,
            pulses,
            unheard,
            tenancy,
            report,
            tails,
            observe,
            epoch,
            offset,
            handing_over,
        })
    }

    /// The epoch under which this process writes feeds. The first who asks has the store give one out, durably.
    pub async fn epoch(&self) -> Result<u64, ProviderError> {
        self.epoch.get().await
    }

    /// The same, if it was given out.
    pub fn epoch_number(&self) -> u64 {
        self.epoch.number().get()
    }

    /// How many delivery threads there are.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// What delivery threads let others see of themselves.
    pub fn pulses(&self) -> &[Arc<Pulse>] {
        &self.pulses
    }

    /// Whether a subscription was handed to its threads.
    pub fn serves(&self, number: SubscriptionNumber) -> bool {
        self.homes.of(number).is_some()
    }

    /// What is watched of deliveries.
    pub fn observe(&self) -> &Observe {
        &self.observe
    }

    /// Sends a command to every thread that serves a subscription.
    pub async fn send(&self, number: SubscriptionNumber, command: impl Fn() -> Command) {
        let Some(home) = self.homes.of(number) else { return };
        let _gate = home.gate.read().await;
        for thread in home.owners() {
            let _ = self.threads[thread].send(command()).await;
        }
    }

    /// Sends a command to the first of the threads that serve a subscription: that of a passive one, where its lanes
    /// come together.
    pub async fn send_to_first(&self, number: SubscriptionNumber, command: Command) {
        let Some(home) = self.homes.of(number) else { return };
        let _gate = home.gate.read().await;
        let Some(first) = home.first() else { return };
        let _ = self.threads[first].send(command).await;
    }

    /// Sends a command to every thread that serves a subscription and puts their answers together. `None`: the node is
    /// stopping, or the subscription is gone.
    pub async fn ask<T: Merge>(
        &self,
        number: SubscriptionNumber,
        command: impl Fn(oneshot::Sender<T>) -> Command,
    ) -> Option<T> {
        let home = self.homes.of(number)?;
        let _gate = home.gate.read().await;
        self.ask_threads(home.owners(), command).await
    }

    async fn ask_threads<T: Merge>(
        &self,
        threads: Vec<usize>,
        command: impl Fn(oneshot::Sender<T>) -> Command,
    ) -> Option<T> {
        let mut answers = Vec::new();
        for thread in threads {
            let (reply, answer) = oneshot::channel();
            let _ = self.threads[thread].send(command(reply)).await;
            answers.push(answer);
        }
        let mut merged: Option<T> = None;
        for answer in answers {
            let answer = answer.await.ok()?;
            merged = Some(match merged {
                Some(before) => before.merge(answer),
                None => answer,
            });
        }
        merged
    }

    /// The wall clock is ahead of the monotonic one by so many milliseconds: every thread is told if it was set.
    pub async fn clock_moved(&self, offset: i64) {
        let by = offset.saturating_sub(self.offset.load(Ordering::Relaxed));
        if by.unsigned_abs() < steps::LEAST.as_millis() as u64 {
            return;
        }
        let _nothing_goes = self.handing_over.write().await;
        for thread in &self.threads {
            let _ = thread.send(Command::ClockMoved(offset)).await;
        }
        self.offset.store(offset, Ordering::Relaxed);
    }

    /// The time now as delivery threads count it: what they keep moments of is compared with this.
    pub fn now(&self, clock: &dyn Clock) -> Timestamp {
        steps::at(self.offset.load(Ordering::Relaxed), clock.monotonic())
    }

    /// How everything stands, all threads summed up. `None`: the node is stopping.
    pub async fn census(&self) -> Option<Census> {
        let mut answers = Vec::with_capacity(self.threads.len());
        for thread in &self.threads {
            let (reply, answer) = oneshot::channel();
            let _ = thread.send(Command::Census(reply)).await;
            answers.push(answer);
        }
        let mut all = Census::default();
        for answer in answers {
            let one = answer.await.ok()?;
            all.gauges.add(&one.gauges);
            all.took = all.took.max(one.took);
            all.troubled.extend(one.troubled);
        }
        Some(all)
    }

    /// Which subscriptions stand out, of all threads. `None`: the node is stopping.
    pub async fn notable(&self) -> Option<NotableOnes> {
        let mut answers = Vec::with_capacity(self.threads.len());
        for thread in &self.threads {
            let (reply, answer) = oneshot::channel();
            let _ = thread.send(Command::Notable(reply)).await;
            answers.push(answer);
        }
        let mut all = NotableOnes::new();
        for answer in answers {
            asking::notable::add(&mut all, answer.await.ok()?);
        }
        Some(all)
    }

    /// Waits until a delivery thread has decided something that has to be durable.
    pub async fn decided(&self) {
        self.report.wait_for_decision().await;
    }

    /// The subscriptions about which something was decided that is not durable yet, of all threads.
    pub async fn decisions(&self) -> Vec<SubscriptionId> {
        let mut answers = Vec::with_capacity(self.threads.len());
        for thread in &self.threads {
            let (reply, answer) = oneshot::channel();
            let _ = thread.send(Command::Decided(reply)).await;
            answers.push(answer);
        }
        let mut all = Vec::new();
        for answer in answers {
            // A thread that has stopped decides nothing.
            all.extend(answer.await.unwrap_or_default());
        }
        all
    }

    /// Sends a test from one of the threads that serve the subscription.
    pub async fn try_out(&self, trial: Trial) -> Option<Tried> {
        let home = self.homes.of(trial.compiled.number)?;
        let thread = home.first()?;
        let (reply, answer) = oneshot::channel();
        let _ = self.threads[thread].send(Command::Try(Box::new(trial), reply)).await;
        answer.await.ok()
    }

    /// A subscription is deleted: after this nothing of it begins. While its lanes go to other threads this waits, so
    /// that it is those who are told.
    pub async fn remove(&self, number: SubscriptionNumber) {
        let Some(home) = self.homes.of(number) else { return };
        let _gate = home.gate.write().await;
        // No answer means that the node is stopping, and then nothing begins either.
        self.ask_threads(home.owners(), |reply| Command::Remove(number, reply)).await;
        self.homes.forget(number);
    }

    /// The store failed where going on is impossible: the node stops.
    pub fn give_up(&self, error: ProviderError) {
        self.report.fatal(error);
    }

    /// How many shards a subscription is served by now, or was before its lanes began to go elsewhere.
    pub fn shards(&self, number: SubscriptionNumber) -> Option<u32> {
        self.homes.of(number).map(|home| home.placement().shards)
    }

    /// Whether lanes of a subscription are going to other threads.
    pub fn is_moving(&self, number: SubscriptionNumber) -> bool {
        self.homes.of(number).is_some_and(|home| home.is_moving())
    }

    /// Sends something that is no notification, from one of the delivery threads. An error says in words why there
    /// was no answer.
    pub async fn errand(
        &self,
        host: HostKey,
        request: flare_wire::Request,
        timeout: Duration,
        limits: Option<ReadLimits>,
    ) -> Result<Answer, String> {
        let (reply, answer) = oneshot::channel();
        let errand = Errand { host, request, timeout, limits, reply };
        let _ = self.threads[0].send(Command::Errand(Box::new(errand))).await;
        answer.await.unwrap_or_else(|_| Err("the node is stopping".to_owned()))
    }

    /// Where a lane stands as far as this node knows, if somebody reads it here.
    pub fn head(&self, lane: LaneId) -> Option<Seq> {
        self.tails.head(lane)
    }

    /// A lane stands at `head` at least; what lies between is in the store.
    pub fn reach(&self, lane: LaneId, head: Seq) {
        self.tails.reach(lane, head);
    }

    /// What other nodes wrote: of a lane, beyond `after`, all that is newest up to `upto`.
    pub fn follow(&self, lane: LaneId, after: Seq, upto: Seq, documents: Vec<Document>) {
        self.tails.follow(lane, after, upto, documents);
    }

    /// Changes of a lane that nobody is to read any more.
    pub fn pass_over(&self, lane: LaneId, gone: impl Fn(&Document) -> bool) {
        self.tails.pass_over(lane, gone);
    }

    /// Tombstones of a lane are no more.
    pub fn removed(&self, lane: LaneId, tombstones: &[(Ordinal, Seq)]) {
        self.tails.removed(lane, tombstones);
    }

    /// The lanes of which it is not known how many documents are beyond a change, until they are counted.
    pub fn uncounted(&self) -> Vec<LaneId> {
        self.tails.partial()
    }

    /// What the store has of such a lane.
    pub fn count(&self, lane: LaneId, stored: Newest) {
        self.tails.load(lane, stored);
    }

    /// A resource is gone.
    pub fn forget(&self, lane: LaneId) {
        self.tails.forget(lane);
    }

    /// Finishes what is in flight, records, and ends every thread.
    pub async fn stop(&self) {
        let mut waiting = Vec::new();
        for thread in &self.threads {
            let (done, stopped) = oneshot::channel();
            if thread.send(Command::Stop(done)).await.is_ok() {
                waiting.push(stopped);
            }
        }
        for stopped in waiting {
            let _ = stopped.await;
        }
        let ended = std::mem::take(&mut *self.handles.lock());
        for running in ended {
            running.end().await;
        }
    }
}
