//! What is watched of deliveries: the last attempts of each subscription, and those that end now; what is counted; and
//! the history of that.
//!
//! Kept in memory and gone with the process: what was given up is in the dead letters, which are durable.

mod attempt;
pub mod count;
#[cfg(test)]
pub(crate) mod fixture;
mod gauges;
pub mod history;
pub mod metrics;
mod redact;
mod trail;
mod view;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use flare_model::ids::SubscriptionNumber;
use flare_model::time::Timestamp;
use parking_lot::Mutex;

pub use attempt::{Entry, Exchange, Outcome, Phases, Spans};
pub use count::Counts;
pub use gauges::Gauges;
pub use history::point::{Percentiles, Point};
pub use history::{History, Sample, Series};
pub use redact::is_secret;
pub use view::{AttemptDetail, AttemptView, Headers, RequestView, ResponseView, Timing};
pub use watching::{News, Watcher};

use crate::epoch::EpochNumber;
use crate::notification::Notification;
use crate::notification::ending::Ending;
use attempt::{Ended, Id};
use trail::Trail;
use watching::Watchers;

/// Bounds of what is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Attempts of one subscription; 0 keeps none.
    pub quantity: usize,
    /// The oldest that is shown.
    pub age: Duration,
    /// Memory for all of them, for each delivery thread.
    pub bytes: usize,
    /// Of so many attempts that succeeded one is kept whole, the first among them; 0 for none.
    pub sample: u32,
    /// How much of a body is kept.
    pub excerpt: usize,
    /// How many may watch at once.
    pub watchers: usize,
}

/// All that is watched. Each delivery thread writes to a trail of its own, so that nobody waits for another; readers
/// take a trail for as long as it takes to copy pointers.
pub struct Observe {
    limits: Limits,
    /// Different in every process, so that an id of the last one finds nothing in this.
    epoch: EpochNumber,
    trails: Vec<Mutex<Trail>>,
    tail: Watchers,
    counts: Arc<Counts>,
}

/// Which attempts.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only of this document.
    pub document: Option<String>,
    /// Only those that ended so.
    pub outcome: Option<Outcome>,
}

impl Wanted {
    fn fits(&self, entry: &Entry) -> bool {
        self.document.as_ref().is_none_or(|url| **url == *entry.url)
            && self.outcome.is_none_or(|outcome| outcome == entry.outcome)
    }
}

impl Observe {
    /// For so many delivery threads.
    pub fn new(limits: Limits, epoch: EpochNumber, threads: usize) -> Arc<Observe> {
        let trails = (0..threads).map(|_| Mutex::new(Trail::new(limits))).collect();
        let counts = Arc::new(Counts::new(threads));
        Arc::new(Observe { limits, epoch, trails, tail: Watchers::new(limits.watchers), counts })
    }

    /// The end of it for one delivery thread.
    pub fn desk(self: &Arc<Observe>, thread: usize) -> Desk {
        Desk { observe: self.clone(), thread, counts: self.counts.thread(thread) }
    }

    /// What is counted.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// Attempts of a subscription, the newest first, none older than the bound; and how many there are.
    pub fn attempts(&self, subscription: SubscriptionNumber, wanted: &Wanted, now: Timestamp) -> Vec<Entry> {
        let mut found: Vec<Entry> = Vec::new();
        for trail in &self.trails {
            found.extend(trail.lock().of(subscription).cloned());
        }
        found.retain(|entry| now.since(entry.began) <= self.limits.age && wanted.fits(entry));
        found.sort_by_key(|entry| std::cmp::Reverse((entry.began, entry.id)));
        found
    }

    /// A subscription is gone.
    pub fn forget(&self, subscription: SubscriptionNumber) {
        self.trails.iter().for_each(|trail| trail.lock().forget(subscription));
    }

    /// Watches attempts as they end; nothing when too many watch already.
    pub fn watch(&self) -> Option<Watcher> {
        self.tail.watch()
    }

    /// Nobody watches any more: the node stops.
    pub fn close(&self) {
        self.tail.close();
    }
}

/// Where a delivery thread leaves its attempts.
pub struct Desk {
    observe: Arc<Observe>,
    thread: usize,
    /// What this thread counts.
    pub counts: Arc<count::Thread>,
}

impl Desk {
    /// Keeps an attempt that has ended.
    pub fn note(&self, told: &Notification, ending: &Ending, began: Timestamp, spans: Spans) {
        let outcome = Outcome::of(&told.compiled.spec, ending);
        self.counts.attempted(outcome, ending, spans.total());
        let observe = &*self.observe;
        let limits = &observe.limits;
        let watched = observe.tail.is_watched();
        if limits.quantity == 0 && !watched {
            return;
        }
        observe.trails[self.thread].lock().note(told.compiled.number, outcome, |number, whole| {
            let id = Id::new(observe.epoch.get(), self.thread, number);
            let ended = Ended { ending, outcome, began, spans };
            let entry = Entry::new(id, told, ended, whole.then_some(limits.excerpt));
            if watched {
                observe.tail.tell(entry.clone());
            }
            entry
        });
    }
}
