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

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::Action;
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

/// What was told lately of a document.
#[derive(Default)]
pub struct Lately {
    /// The last attempt.
    pub last: Option<Entry>,
    /// The last one that the client took, where that tells what it has.
    pub delivered: Option<Entry>,
}

impl Lately {
    fn meet(&mut self, entry: &Entry) {
        let is_later = |known: &Option<Entry>| {
            known
                .as_ref()
                .is_none_or(|known| (known.seq, known.began, known.id) < (entry.seq, entry.began, entry.id))
        };
        if is_later(&self.last) {
            self.last = Some(entry.clone());
        }
        if entry.outcome == Outcome::Delivered && is_later(&self.delivered) {
            self.delivered = Some(entry.clone());
        }
    }

    /// The revision that the client has by this, as the origin wrote it.
    pub fn has(&self) -> Option<String> {
        let taken = self.delivered.as_ref().filter(|entry| entry.action != Action::Delete);
        taken.map(|entry| entry.revision.to_string())
    }
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

    /// What was told lately of some documents of a subscription, each by its url.
    pub fn lately(&self, subscription: SubscriptionNumber, urls: &[&str]) -> HashMap<String, Lately> {
        let mut lately: HashMap<String, Lately> = HashMap::new();
        let mut unseen_until = None;
        for trail in &self.trails {
            let trail = trail.lock();
            unseen_until = unseen_until.max(trail.unseen_until(subscription));
            for entry in trail.of(subscription).filter(|entry| urls.contains(&&*entry.url)) {
                lately.entry(entry.url.to_string()).or_default().meet(entry);
            }
        }
        let is_known = |entry: &Entry| unseen_until.is_none_or(|until| entry.began > until);
        for found in lately.values_mut() {
            found.delivered.take_if(|entry| !is_known(entry));
        }
        lately
    }

    /// The bounds of what is kept.
    pub fn limits(&self) -> &Limits {
        &self.limits
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
    /// The revision that the client last took of a document, as far as attempts are kept.
    pub fn last_delivered(&self, subscription: SubscriptionNumber, url: &str) -> Option<String> {
        self.observe.lately(subscription, &[url]).remove(url)?.has()
    }

    /// Whether a record could be written. A node that writes none is not ready.
    pub fn records(&self, written: bool) {
        let refusing = &self.observe.counts.origin.refusing;
        match written {
            true => drop(refusing.accepted()),
            false => refusing.failed(),
        }
    }

    /// The client took something that was no attempt of a courier.
    pub fn delivered_unseen(&self, subscription: SubscriptionNumber, at: Timestamp) {
        self.observe.trails[self.thread].lock().delivered_unseen(subscription, at);
    }

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
