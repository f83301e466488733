//! The concurrency of a subscription, and its rate, where several threads share them; and how its client fares, of which each
//! of them knows a part.
//!
//! A subscription with one thread has its concurrency to itself and pays nothing here. Of several, each borrows from one
//! pool. As long as it has something to send, it keeps what it borrowed up to its part, so that threads that are all
//! busy take and give nothing; beyond its part it gives back with every attempt that ends, and all of it when there is
//! nothing to send.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use flare_model::health::Fares;
use flare_model::time::Timestamp;
use parking_lot::Mutex;

use crate::journey::permits::bucket::Bucket;
use crate::journey::permits::pool::{CalledThreads, Permits};

/// What the threads that serve a subscription share.
pub struct Common {
    /// Its concurrency.
    permits: Permits,
    /// The bucket of its rate limit, once something was taken from it.
    pub bucket: Mutex<Option<Box<Bucket>>>,
    /// How the client fares.
    fares: Mutex<Fares>,
    /// Whether it fails, and when it was last well, in milliseconds: looked at with every delivery.
    fails: AtomicBool,
    well_at: AtomicI64,
}

/// Threads that are all busy hear of each other so often: otherwise each delivery would take the others' caches.
const NEWS: i64 = 1000;

impl Common {
    /// With this concurrency, of which nothing is taken.
    pub fn new(concurrency: u32) -> Arc<Common> {
        Arc::new(Common {
            permits: Permits::new(concurrency),
            bucket: Mutex::default(),
            fares: Mutex::default(),
            fails: AtomicBool::new(false),
            well_at: AtomicI64::new(i64::MIN),
        })
    }

    /// How the client fares, of all threads together; when it was last well, within a second.
    pub fn fares(&self) -> Fares {
        *self.fares.lock()
    }

    /// Whether it fails.
    pub fn fails(&self) -> bool {
        self.fails.load(Ordering::Relaxed)
    }

    /// What a thread knows is put to it.
    pub fn fared(&self, part: Fares) {
        self.change(|fares| *fares = fares.and(part));
    }

    /// An attempt failed, and ended then.
    pub fn failed(&self, at: Timestamp) {
        self.change(|fares| {
            fares.failing_since.get_or_insert(at);
            fares.failed_at = fares.failed_at.max(Some(at));
        });
    }

    /// The client took something then, or asked to drop it.
    pub fn was_well(&self, at: Timestamp) {
        if self.fails() || at.millis() > self.well_at.load(Ordering::Relaxed).saturating_add(NEWS) {
            self.change(|fares| {
                fares.failing_since = None;
                fares.well_at = fares.well_at.max(Some(at));
            });
        }
    }

    /// What failed before counts no more.
    pub fn forgive(&self) {
        self.change(|fares| fares.failing_since = None);
    }

    fn change(&self, change: impl FnOnce(&mut Fares)) {
        let mut fares = self.fares.lock();
        change(&mut fares);
        self.fails.store(fares.failing_since.is_some(), Ordering::Relaxed);
        self.well_at.store(fares.well_at.map_or(i64::MIN, Timestamp::millis), Ordering::Relaxed);
    }
}

/// What a thread has of a concurrency that it shares with others.
pub struct Borrowed {
    /// What is shared.
    pub common: Arc<Common>,
    /// How many it has.
    held: u32,
    /// How many of them it keeps for its next attempts.
    part: u32,
    /// It has asked for one more than there are.
    in_line: bool,
}

impl Borrowed {
    /// Nothing but what a thread has open already, from when it shared with nobody.
    pub fn new(common: Arc<Common>, open: u32, part: u32) -> Borrowed {
        common.permits.count_in(open);
        Borrowed { common, held: open, part, in_line: false }
    }

    /// Whether nothing can begin before it is called.
    pub fn is_waiting(&self, in_flight: u32) -> bool {
        self.in_line && in_flight >= self.held
    }

    /// Takes what one more attempt costs, if there is any, or stands in line for it.
    pub fn take(&mut self, thread: usize, in_flight: u32) -> bool {
        if in_flight < self.held {
            return true;
        }
        if self.in_line {
            return false;
        }
        let taken = self.common.permits.take(thread);
        self.held += u32::from(taken);
        self.in_line = !taken;
        taken
    }

    /// An attempt has ended, and so many are open: what the thread has beyond its part goes back. Whom to call, if so.
    pub fn give_back(&mut self, in_flight: u32) -> Option<CalledThreads> {
        if self.held <= self.part.max(in_flight) {
            return None;
        }
        self.held -= 1;
        Some(self.common.permits.give(1))
    }

    /// There is nothing to send: all that no open attempt uses goes back. Whom to call, if anything did.
    pub fn give_spare(&mut self, in_flight: u32) -> Option<CalledThreads> {
        let spare = self.held.saturating_sub(in_flight);
        if spare == 0 {
            return None;
        }
        self.held -= spare;
        Some(self.common.permits.give(spare))
    }

    /// A thread that does not stand in line does not take what it may have been called for. Whom to call instead.
    pub fn decline(&self, thread: usize) -> Option<CalledThreads> {
        (!self.in_line).then(|| self.common.permits.decline(thread))
    }

    /// The thread was called: it may try again.
    pub fn called(&mut self) {
        self.in_line = false;
    }

    /// Another concurrency is shared, and another part of it is this thread's. Whom to call.
    pub fn resize(&mut self, concurrency: u32, part: u32) -> CalledThreads {
        self.part = part;
        self.common.permits.resize(concurrency)
    }

    /// The thread shares no more; nothing is in flight. Whom to call, for each of the two reasons.
    pub fn leave(&self, thread: usize) -> [CalledThreads; 2] {
        [self.common.permits.give(self.held), self.common.permits.leave(thread)]
    }
}
