//! A census: how all subscriptions of a delivery thread stand, added up.
//!
//! It walks over them instead of keeping sums, so that no rule of feeds has to keep a number right beside itself. It
//! walks in small steps, between which the thread does what else there is to do.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use flare_model::feed::SweepKind;
use flare_model::ids::SubscriptionId;
use flare_model::subscription::Status;
use flare_model::time::Timestamp;
use tokio::sync::oneshot;

use crate::journey::subscriber::{Standstill, Subscriber};
use crate::journey::worker::Worker;
use crate::observe::Gauges;

/// Subscriptions looked at before others have their turn, which takes about as long as a few deliveries.
const STEP: usize = 256;

/// How all subscriptions stood.
#[derive(Debug, Default)]
pub struct Census {
    /// Added up.
    pub gauges: Gauges,
    /// How long a thread was kept by it, without what it did meanwhile.
    pub took: Duration,
    /// Subscriptions that are at work and in trouble. Bound: [`TROUBLED`] of each thread. When full: the rest is found once
    /// these are well.
    pub troubled: Vec<Found>,
}

/// Subscriptions in trouble that a thread tells of at a time.
const TROUBLED: usize = 1024;

/// A subscription that is at work and in trouble.
#[derive(Clone, Debug)]
pub struct Found {
    /// Which.
    pub id: SubscriptionId,
    /// What ails it.
    pub ail: Ail,
    /// Since when, as far as that is known: otherwise it was found now.
    pub since: Timestamp,
}

/// What ails a subscription that is at work; the first that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ail {
    /// It is shown as failing.
    Fails,
    /// It gave documents up.
    DeadLetters,
    /// An expression of it had no result, not long ago.
    FilterErrors,
}

/// So long an expression without a result is something to look at.
pub const RECENT_ERROR: Duration = Duration::from_secs(24 * 60 * 60);

/// Takes a census and tells it.
pub async fn take(worker: Rc<RefCell<Worker>>, reply: oneshot::Sender<Census>) {
    let clock = worker.borrow().tools.clock.clone();
    let mut census = Census::default();
    let mut next = 0;
    // What comes and goes meanwhile may be missed: the next census has it.
    while next < worker.borrow().subscribers.indices() {
        let began = clock.monotonic();
        worker.borrow().count(next..next + STEP, &mut census);
        census.took += clock.monotonic().saturating_sub(began);
        next += STEP;
        tokio::task::yield_now().await;
    }
    worker.borrow().count_hosts(&mut census.gauges);
    let _ = reply.send(census);
}

impl Worker {
    /// Adds the subscriptions at these places.
    fn count(&self, keys: std::ops::Range<usize>, census: &mut Census) {
        let now = self.now();
        let gauges = &mut census.gauges;
        for (place, subscriber) in self.subscribers.part(keys) {
            let leased = subscriber.leases.as_ref().map_or(0, |leases| leases.out()) as u64;
            let lagging = self.lagging(place).documents;
            gauges.backlog += lagging;
            gauges.lagging += u64::from(lagging > 0);
            gauges.largest_backlog = gauges.largest_backlog.max(lagging);
            gauges.leased += leased;
            gauges.waiting += (subscriber.waiting() as u64).saturating_sub(leased);
            let dead_letters = subscriber.lanes.iter().map(|lane| lane.feed.dead().len()).sum::<u64>();
            gauges.dead_letters += dead_letters;
            let status = self.status(subscriber, now);
            // One that several threads serve is counted by the first of them.
            if subscriber.placement.first() == self.thread {
                gauges.subscriptions.add(status);
            }
            let ail = match status {
                Status::Disabled | Status::Paused => None,
                Status::Failing => Some(Ail::Fails),
                Status::Preparing | Status::Active if dead_letters > 0 => Some(Ail::DeadLetters),
                Status::Preparing | Status::Active => errs(subscriber, now).then_some(Ail::FilterErrors),
            };
            if let Some(ail) = ail.filter(|_| census.troubled.len() < TROUBLED) {
                let since = subscriber.fortune.failing_since.filter(|_| ail == Ail::Fails).unwrap_or(now);
                census.troubled.push(Found { id: subscriber.compiled.id.clone(), ail, since });
            }
        }
    }

    /// As far as this thread knows.
    fn status(&self, subscriber: &Subscriber, now: Timestamp) -> Status {
        match subscriber.standstill {
            Standstill::Disabled => Status::Disabled,
            Standstill::Paused => Status::Paused,
            Standstill::None if subscriber.is_shown_failing(now, self.tools.limits.failing_after) => {
                Status::Failing
            }
            Standstill::None => {
                let mut sweeps = subscriber.lanes.iter().filter_map(|lane| lane.feed.sweeping());
                let preparing = sweeps.any(|sweep| sweep.kind == SweepKind::Beginning);
                if preparing { Status::Preparing } else { Status::Active }
            }
        }
    }

    fn count_hosts(&self, gauges: &mut Gauges) {
        gauges.in_flight = self.in_flight as u64;
        gauges.connections = self.hosts.connections() as u64;
        gauges.hosts = self.hosts.len() as u64;
        gauges.waiting_for_connection = self.hosts.waiting() as u64;
        // All threads share them: one tells.
        gauges.slow_requests = if self.thread == 0 { self.tools.caps.slow_in_all().into() } else { 0 };
        gauges.open_breakers = self.hosts.iter().filter(|(_, host)| !host.breaker.is_closed()).count() as u64;
    }
}

/// Whether an expression had no result lately.
fn errs(subscriber: &Subscriber, now: Timestamp) -> bool {
    let feeds = subscriber.lanes.iter().filter_map(|lane| lane.feed.filtering());
    let mut errors = feeds.filter_map(|filtering| filtering.last_error.as_ref());
    errors.any(|error| now.since(error.at) < RECENT_ERROR)
}
