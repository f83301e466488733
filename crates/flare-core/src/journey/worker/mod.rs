//! Spread: one delivery thread. It owns a part of the subscriptions whole, so nothing here takes a lock.
//!
//! Changes ring a bell; feeds parked at the end of a lane become ready and stand in the queue of their host
//! (`hosts.rs`); couriers (one per connection) take work from there. Idle subscriptions cost bytes, not tasks.

pub mod breaker;
pub mod hosts;
pub mod moments;
pub mod parking;

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::State;
use flare_model::ids::{LaneId, Ordinal, SubscriptionNumber};
use flare_model::time::Timestamp;
use flare_provider::Ledger;
use slab::Slab;
use tokio::sync::{Notify, oneshot};
use tokio_util::task::TaskTracker;

use crate::door::{Chance, Clock};
use crate::journey::bell::Rung;
use crate::journey::connection::{Dialler, ReadLimits};
use crate::journey::log::pages::Pages;
use crate::journey::permits::caps::Caps;
use crate::journey::reading::states::States;
use crate::journey::report::Report;
use crate::journey::subscriber::Subscriber;
use crate::journey::subscriber::lane::Era;
use crate::journey::subscriber::passive::PassiveLimits;
use crate::journey::worker::breaker::BreakerSettings;
use crate::journey::worker::hosts::{Host, Starved};
use crate::journey::worker::parking::Parking;
use crate::notification::host::HostKey;
use crate::observe::Desk;
use crate::steps;
use crate::telemetry::Tracer;

/// What a delivery thread works with. Each has one of its own; what is behind an `Arc` in it is the same for all of them.
pub struct Tools {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// For jitter.
    pub chance: Chance,
    /// For feeds that are behind.
    pub pages: Pages,
    /// For records.
    pub ledger: Arc<dyn Ledger>,
    /// For connections.
    pub dialler: Dialler,
    /// The epoch under which this process writes.
    pub epoch: u64,
    /// How much of answers is read.
    pub read_limits: ReadLimits,
    /// Settings.
    pub limits: WorkerLimits,
    /// What all threads together may have open.
    pub caps: Arc<Caps>,
    /// What the node is told: clients that fail, decisions, fatal errors.
    pub report: Report,
    /// Where attempts that have ended are kept.
    pub desk: Desk,
    /// What makes spans, where telemetry is on.
    pub tracer: Option<Arc<Tracer>>,
}

/// Bounds of a delivery thread.
#[derive(Clone, Copy, Debug)]
pub struct WorkerLimits {
    /// How long opening one may take.
    pub connect_timeout: Duration,
    /// How long an idle one is kept.
    pub idle_timeout: Duration,
    /// The least time between two records.
    pub record_interval: Duration,
    /// How far a feed may run beyond its oldest open attempt.
    pub window: u64,
    /// How many documents of a subscription may wait for a retry.
    pub waiting_limit: usize,
    /// By how much the mark of what may have been sent grows.
    pub issue_block: u64,
    /// When a host is left alone.
    pub breaker: BreakerSettings,
    /// How long nothing may have succeeded before the operator is told.
    pub failing_after: Duration,
    /// How long nothing may have succeeded before a subscription is disabled; zero: it never is.
    pub disable_after: Duration,
    /// Bounds of passive mode.
    pub passive: PassiveLimits,
    /// Memory for kept states, for this thread.
    pub state_bytes: usize,
    /// The largest document whose state is kept.
    pub state_limit: usize,
}

/// One delivery thread's state.
pub struct Worker {
    /// Which thread this is.
    pub thread: usize,
    /// What it works with.
    pub tools: Arc<Tools>,
    /// By how many milliseconds the wall clock is ahead of the monotonic one, as far as this thread was told.
    pub(super) offset: i64,
    /// Its subscriptions.
    pub subscribers: Slab<Subscriber>,
    /// The way to them.
    pub by_number: HashMap<SubscriptionNumber, usize>,
    /// Those about which something was decided that is not durable yet. Bound: each once.
    pub decided: BTreeSet<SubscriptionNumber>,
    /// Feeds at the ends of their lanes.
    pub(super) parked: Parking,
    /// By the index in `host_index`. Bound: those that its subscriptions send to, or that couriers are on the way to.
    pub hosts: Slab<Host>,
    pub(super) host_index: HashMap<HostKey, usize>,
    /// Bound: one per document that waits, and one per subscription.
    pub(super) alarms: BinaryHeap<Reverse<(Duration, Alarm)>>,
    /// Rung when an alarm is set before all others.
    pub alarm_set: Rc<Notify>,
    /// What is to be recorded.
    pub unrecorded: Unrecorded,
    /// Connections open or opening.
    pub(super) connections: usize,
    /// Hosts that wait for a connection.
    pub(super) starved: Starved,
    /// Subscriptions whose clients hang and that wait to ask them. Bound: each once.
    pub(super) hanging: VecDeque<(usize, SubscriptionNumber)>,
    /// No attempt begins any more.
    pub stopping: bool,
    /// The recorder ends.
    pub closing: bool,
    /// Rung when the last attempt has ended.
    pub drained: Rc<Notify>,
    /// Attempts open now.
    pub in_flight: usize,
    /// Documents as clients last got them, for those who keep that.
    pub states: States,
    /// The last era that began for a lane.
    pub(super) eras: Era,
    /// The owner of every task of this thread.
    pub tasks: TaskTracker,
    me: Weak<RefCell<Worker>>,
}

/// A feed: the subscription's place on its thread, which subscription that was, and the lane.
pub type FeedKey = (usize, SubscriptionNumber, u8);

/// Feeds whose record is to be written.
#[derive(Default)]
pub struct Unrecorded {
    /// Soon. Bound: each feed once.
    pub feeds: Vec<FeedKey>,
    /// At once: something waits for it. Bound: each feed once.
    pub urgent: Vec<FeedKey>,
    /// Who wants to know when all that is known now is durable.
    pub waiters: Vec<oneshot::Sender<()>>,
    /// Rung with the first of either.
    pub rung: Rc<Notify>,
    /// Rung with the first urgent one.
    pub hurry: Rc<Notify>,
}

impl Unrecorded {
    /// Whether something waits for a record.
    pub fn is_urgent(&self) -> bool {
        !self.urgent.is_empty() || !self.waiters.is_empty()
    }

    /// What is to be written next: the urgent ones, and if it is `due`, the others too. Whoever waits wants all that was
    /// known when it asked, and some of that may be in the list that is not urgent: its feed was urgent already, for an
    /// earlier record.
    pub fn take(&mut self, due: bool) -> Turn {
        let waiters = std::mem::take(&mut self.waiters);
        let mut feeds = std::mem::take(&mut self.urgent);
        feeds.sort_unstable();
        feeds.dedup();
        let all = due || !waiters.is_empty();
        if all {
            // Behind the urgent ones, which do not wait for them.
            let mut others = std::mem::take(&mut self.feeds);
            others.retain(|feed| feeds.binary_search(feed).is_err());
            feeds.append(&mut others);
        }
        Turn { feeds, all, waiters }
    }
}

/// What the recorder writes before it looks again.
pub struct Turn {
    /// Each once, the urgent ones first.
    pub feeds: Vec<FeedKey>,
    /// There were no others. If there were, some of these are among them.
    pub all: bool,
    /// Who wants to know when it is durable.
    pub waiters: Vec<oneshot::Sender<()>>,
}

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// A retry is due, unless its time has been changed meanwhile.
    Retry(usize, SubscriptionNumber, u8, Ordinal, Timestamp),
    /// A subscription may go on (its rate, its probe).
    Wake(usize, SubscriptionNumber),
    /// A host may be tried again.
    Host(usize),
    /// The first lease of a subscription is over.
    Leases(usize, SubscriptionNumber),
}

impl Worker {
    /// A thread with nothing to do.
    pub fn new(thread: usize, tools: Arc<Tools>, tasks: TaskTracker) -> Rc<RefCell<Worker>> {
        let states = States::new(tools.limits.state_bytes, tools.limits.state_limit);
        let offset = steps::offset(&*tools.clock);
        Rc::new_cyclic(|me| {
            RefCell::new(Worker {
                thread,
                tools,
                offset,
                subscribers: Slab::new(),
                by_number: HashMap::new(),
                decided: BTreeSet::new(),
                parked: Parking::default(),
                hosts: Slab::new(),
                host_index: HashMap::new(),
                alarms: BinaryHeap::new(),
                alarm_set: Rc::default(),
                unrecorded: Unrecorded::default(),
                connections: 0,
                starved: Starved::default(),
                hanging: VecDeque::new(),
                stopping: false,
                closing: false,
                drained: Rc::default(),
                in_flight: 0,
                states,
                eras: Era::default(),
                tasks,
                me: me.clone(),
            })
        })
    }

    /// A way to this thread's state for a task of its own.
    pub fn handle(&self) -> Rc<RefCell<Worker>> {
        self.me.upgrade().expect("the worker lives as long as its thread")
    }

    /// The subscriber at a key, unless it is another one by now.
    pub fn subscriber(&mut self, key: usize, number: SubscriptionNumber) -> Option<&mut Subscriber> {
        self.subscribers.get_mut(key).filter(|subscriber| subscriber.compiled.number == number)
    }

    /// The bell was rung.
    pub fn rung(&mut self, rung: Rung) {
        self.lanes_moved(rung.lanes);
        for call in rung.calls {
            self.called(call);
        }
    }

    /// Lanes have moved: whoever is parked at their end has something to read.
    fn lanes_moved(&mut self, lanes: Vec<LaneId>) {
        for lane in lanes {
            for (key, number) in self.parked.wake(lane) {
                let Some(subscriber) = self.subscriber(key, number) else { continue };
                let Some(slot) = subscriber.lanes.get_mut(lane.index) else { continue };
                slot.parked = None;
                subscriber.mark_unread(lane.index);
                self.ready(key);
            }
        }
    }

    /// Puts a feed to sleep at the end of its lane. False when there is something to read after all.
    pub fn park(&mut self, key: usize, lane: u8) -> bool {
        let subscriber = &mut self.subscribers[key];
        let slot = &mut subscriber.lanes[usize::from(lane)];
        if slot.parked.is_some() {
            return true;
        }
        if !slot.tail.park(slot.feed.position(), self.thread) {
            return false;
        }
        slot.parked = Some(self.parked.park(slot.tail.lane(), key, subscriber.compiled.number));
        true
    }

    /// A subscription may have something to take: it stands in its host's queue, once, and a courier is called.
    pub fn ready(&mut self, key: usize) {
        if let Some(host) = self.enqueue(key) {
            self.summon(host);
        }
    }

    /// The same by a courier of host `mine`, who is about to look into that queue itself.
    pub fn ready_for(&mut self, key: usize, mine: usize) {
        if let Some(host) = self.enqueue(key)
            && (host != mine || self.hosts[host].ready.len() > 1)
        {
            self.summon(host);
        }
    }

    fn enqueue(&mut self, key: usize) -> Option<usize> {
        if self.subscribers.get(key)?.passive.is_some() && !self.passive_turn(key) {
            return None;
        }
        let subscriber = self.subscribers.get_mut(key)?;
        let nothing = subscriber.unread.is_empty() && subscriber.due.is_empty();
        let stands = subscriber.stands() || self.stopping;
        let full = subscriber.in_flight >= subscriber.room() || subscriber.waits_for_concurrency();
        if nothing || stands || full || subscriber.queued {
            self.rest(key);
            return None;
        }
        subscriber.queued = true;
        let host = subscriber.host;
        self.hosts[host].ready.push_back(key);
        Some(host)
    }

    /// A feed has something to record.
    pub fn mark_dirty(&mut self, key: usize, lane: u8, urgent: bool) {
        let subscriber = &mut self.subscribers[key];
        subscriber.lanes.note(lane);
        let number = subscriber.compiled.number;
        let slot = &mut subscriber.lanes[usize::from(lane)];
        if urgent && !slot.wants_record {
            slot.wants_record = true;
            self.unrecorded.urgent.push((key, number, lane));
            self.unrecorded.rung.notify_one();
            self.unrecorded.hurry.notify_one();
        }
        if !slot.dirty {
            slot.dirty = true;
            if self.unrecorded.feeds.is_empty() {
                self.unrecorded.rung.notify_one();
            }
            self.unrecorded.feeds.push((key, number, lane));
        }
    }

    /// A feed may have something to record: if so, it is recorded soon.
    pub fn record_what_changed(&mut self, key: usize, lane: u8) {
        let slot = self.subscribers[key].lanes.get(lane);
        if slot.is_some_and(|slot| slot.feed.is_changed() && !slot.dirty) {
            self.mark_dirty(key, lane, false);
        }
    }

    /// A feed has something to record that a document waits for, while the others go on.
    pub fn hurry(&mut self, key: usize, lane: u8) {
        let subscriber = &mut self.subscribers[key];
        let number = subscriber.compiled.number;
        let slot = &mut subscriber.lanes[usize::from(lane)];
        if !slot.hurries {
            slot.hurries = true;
            self.unrecorded.urgent.push((key, number, lane));
            self.unrecorded.rung.notify_one();
            self.unrecorded.hurry.notify_one();
        }
    }

    /// Sets an alarm for a monotonic time.
    pub fn set_alarm(&mut self, at: Duration, alarm: Alarm) {
        let first = self.alarms.peek().is_none_or(|Reverse((earliest, _))| at < *earliest);
        self.alarms.push(Reverse((at, alarm)));
        if first {
            self.alarm_set.notify_one();
        }
    }

    /// Wakes a subscription at a monotonic time; only the earliest such alarm counts.
    pub fn wake_at(&mut self, key: usize, at: Duration) {
        let Some(subscriber) = self.subscribers.get_mut(key) else { return };
        if at < subscriber.alarm {
            subscriber.alarm = at;
            let number = subscriber.compiled.number;
            self.set_alarm(at, Alarm::Wake(key, number));
        }
    }

    /// Sets the alarm of a document that waits. A due time too far away comes from a clock that jumped.
    pub fn schedule_retry(&mut self, key: usize, lane: u8, ordinal: Ordinal) {
        let monotonic = self.tools.clock.monotonic();
        let now = self.moment(monotonic);
        let Some(subscriber) = self.subscribers.get_mut(key) else { return };
        let longest = subscriber.longest_wait(self.tools.limits.passive.maximum_lease);
        let number = subscriber.compiled.number;
        let slot = subscriber.lanes.get_mut(lane);
        let Some(standing) = slot.and_then(|slot| slot.feed.waiting().get(&ordinal)) else { return };
        let Some(due) = standing.due() else { return };
        let wait = due.since(now).min(longest);
        if wait.is_zero() {
            subscriber.due.push_back((lane, ordinal));
            self.ready(key);
        } else {
            self.set_alarm(monotonic + wait, Alarm::Retry(key, number, lane, ordinal, due));
        }
    }

    /// Handles what is due and answers when the next alarm is.
    pub fn ring_alarms(&mut self) -> Option<Duration> {
        let now = self.tools.clock.monotonic();
        while let Some(Reverse((at, _))) = self.alarms.peek() {
            if *at > now {
                return Some(*at - now);
            }
            let Some(Reverse((_, alarm))) = self.alarms.pop() else { break };
            match alarm {
                Alarm::Wake(key, number) => {
                    if let Some(subscriber) = self.subscriber(key, number) {
                        if subscriber.alarm <= now {
                            subscriber.alarm = Duration::MAX;
                        }
                        self.ready(key);
                    }
                }
                // Perhaps another one by now, which finds nothing to do.
                Alarm::Host(host) if self.hosts.contains(host) => self.summon_if_needed(host),
                Alarm::Host(_) => {}
                Alarm::Leases(key, number) => self.expire_leases(key, number),
                Alarm::Retry(key, number, lane, ordinal, due) => {
                    let Some(subscriber) = self.subscriber(key, number) else { continue };
                    let slot = subscriber.lanes.get_mut(lane);
                    let standing = slot.and_then(|slot| slot.feed.waiting().get(&ordinal));
                    if standing.is_some_and(|standing| standing.state == (State::Waiting { due })) {
                        subscriber.due.push_back((lane, ordinal));
                        self.ready(key);
                    }
                }
            }
        }
        None
    }
}
