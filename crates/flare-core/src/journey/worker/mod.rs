//! The state of one delivery thread, in parts: its subscriptions, the hosts they send to, its alarms, what is unrecorded.
//! It owns a part of the subscriptions whole, so nothing here takes a lock.
//!
//! The rooms above act on it; nothing here knows them. In: what happened. Out: what is known now.

pub mod alarms;
pub mod breaker;
pub mod hosts;
pub mod job;
pub mod moments;
pub mod parking;
pub mod queue;
pub mod states;
pub mod subscribers;
pub mod unrecorded;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use flare_model::ids::SubscriptionNumber;
use flare_provider::Ledger;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::door::{Chance, Clock};
use crate::journey::connection::{Dialler, ReadLimits};
use crate::journey::log::pages::Pages;
use crate::journey::permits::caps::Caps;
use crate::journey::pulse::Pulse;
use crate::journey::report::Report;
use crate::journey::subscriber::lane::Era;
use crate::journey::subscriber::passive::PassiveLimits;
use crate::journey::tenancy::Tenancy;
use crate::journey::worker::alarms::{Alarm, Alarms};
use crate::journey::worker::breaker::BreakerSettings;
use crate::journey::worker::hosts::Hosts;
use crate::journey::worker::parking::Parking;
use crate::journey::worker::states::States;
use crate::journey::worker::subscribers::{Place, Subscribers};
use crate::journey::worker::unrecorded::Unrecorded;
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
    /// What the cluster allows the node, if it is in one.
    pub tenancy: Option<Arc<Tenancy>>,
    /// What others see of it.
    pub pulse: Arc<Pulse>,
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
    pub(super) thread: usize,
    /// What it works with.
    pub(super) tools: Arc<Tools>,
    /// By how many milliseconds the wall clock is ahead of the monotonic one, as far as this thread was told.
    pub(super) offset: i64,
    /// Its subscriptions.
    pub(super) subscribers: Subscribers,
    /// Those about which something was decided that is not durable yet. Bound: each once.
    pub(super) decided: BTreeSet<SubscriptionNumber>,
    /// Feeds at the ends of their lanes.
    pub(super) parked: Parking,
    /// Where its subscriptions send to.
    pub(super) hosts: Hosts,
    /// What is to be done at a time.
    pub(super) alarms: Alarms,
    /// What is to be recorded.
    pub(super) unrecorded: Unrecorded,
    /// No attempt begins any more.
    pub(super) stopping: bool,
    /// The recorder ends.
    pub(super) closing: bool,
    /// Rung when the last attempt has ended.
    pub(super) drained: Rc<Notify>,
    /// Rung when lanes were cut: whoever sends something of them stops.
    pub(super) cuts: Rc<Notify>,
    /// Attempts open now.
    pub(super) in_flight: usize,
    /// Documents as clients last got them, for those who keep that.
    pub(super) states: States,
    /// The last era that began for a lane.
    pub(super) eras: Era,
    /// How many leases this thread has given. Each has its number: two that begin in the same millisecond may have the same
    /// token, where nobody was told of the first.
    pub(super) leases_given: u64,
    /// The owner of every task of this thread.
    pub(super) tasks: TaskTracker,
    me: Weak<RefCell<Worker>>,
}

impl Worker {
    /// A thread with nothing to do.
    pub fn new(thread: usize, tools: Arc<Tools>, tasks: TaskTracker) -> Rc<RefCell<Worker>> {
        let states = States::new(tools.limits.state_bytes, tools.limits.state_limit);
        let offset = steps::offset(&*tools.clock);
        let hosts = Hosts::new(thread, tools.caps.clone());
        Rc::new_cyclic(|me| {
            RefCell::new(Worker {
                thread,
                tools,
                offset,
                subscribers: Subscribers::default(),
                decided: BTreeSet::new(),
                parked: Parking::default(),
                hosts,
                alarms: Alarms::default(),
                unrecorded: Unrecorded::default(),
                stopping: false,
                closing: false,
                drained: Rc::default(),
                cuts: Rc::default(),
                in_flight: 0,
                states,
                eras: Era::default(),
                leases_given: 0,
                tasks,
                me: me.clone(),
            })
        })
    }

    /// A way to this thread's state for a task of its own.
    pub fn handle(&self) -> Rc<RefCell<Worker>> {
        self.me.upgrade().expect("the worker lives as long as its thread")
    }

    /// A feed has something to record.
    pub fn mark_dirty(&mut self, place: Place, lane: u8, urgent: bool) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        subscriber.lanes.note(lane);
        let Some(slot) = subscriber.lanes.get_mut(lane) else { return };
        if urgent && !slot.wants_record {
            slot.wants_record = true;
            self.unrecorded.add_urgent(place.feed(lane));
        }
        if !slot.dirty {
            slot.dirty = true;
            self.unrecorded.add(place.feed(lane));
        }
    }

    /// A feed may have something to record: if so, it is recorded soon.
    pub fn record_what_changed(&mut self, place: Place, lane: u8) {
        let slot = self.subscribers.lane(place, lane);
        if slot.is_some_and(|slot| slot.feed.is_changed() && !slot.dirty) {
            self.mark_dirty(place, lane, false);
        }
    }

    /// A feed has something to record that a document waits for, while the others go on.
    pub fn hurry(&mut self, place: Place, lane: u8) {
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return };
        if !slot.hurries {
            slot.hurries = true;
            self.unrecorded.add_urgent(place.feed(lane));
        }
    }

    /// Wakes a subscription at a monotonic time; only the earliest such alarm counts.
    pub fn wake_at(&mut self, place: Place, at: Duration) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        if at < subscriber.alarm {
            subscriber.alarm = at;
            self.alarms.set(at, Alarm::Wake(place));
        }
    }
}
