//! A subscription on its delivery thread: its feeds, what is ready to be taken, and how it has fared. In: what the rooms
//! above find out. Out: what it may do now. Plain data with small rules; nothing here knows a thread or the store.

pub mod decision;
pub mod faring;
pub mod lane;
pub mod lanes;
pub mod passive;
pub mod placement;
pub mod seldom;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::State;
use flare_model::ids::Ordinal;
use flare_model::pace::{Ask, Throttle};
use flare_model::sharing::{Class, Service, Ticket};
use flare_model::time::Timestamp;

use crate::journey::permits::bucket::Bucket;
use crate::journey::permits::concurrency::Borrowed;
use crate::journey::subscriber::decision::Decision;
use crate::journey::subscriber::faring::Luck;
use crate::journey::subscriber::lanes::Lanes;
use crate::journey::subscriber::passive::Passive;
use crate::journey::subscriber::passive::drive::Drive;
use crate::journey::subscriber::passive::leases::Leases;
use crate::journey::subscriber::placement::Placement;
use crate::notification::compiled::Compiled;

/// So many documents are read at once for whoever takes them from a passive subscription.
const FETCHES: u32 = 16;

/// Whether a subscription may begin attempts.
#[derive(Clone, Debug, PartialEq)]
pub enum Standstill {
    /// It works.
    None,
    /// A user stopped it.
    Paused,
    /// Flare stopped it.
    Disabled,
}

/// One subscription.
pub struct Subscriber {
    /// Its settings.
    pub compiled: Arc<Compiled>,
    /// Whether it may begin attempts; [`Subscriber::stand`] changes it.
    pub standstill: Standstill,
    /// Why it is to be disabled, until that is durable.
    pub decision: Option<Box<Decision>>,
    /// While it may not: since when.
    pub stood: Option<Stood>,
    /// Those of its lanes that this thread serves.
    pub lanes: Lanes,
    /// Lanes with something unread. Bound: each lane once.
    pub unread: VecDeque<u8>,
    /// Documents whose retry is due or that are to be decided again. Bound: those waiting, see `waiting-limit`.
    pub due: VecDeque<(u8, Ordinal)>,
    /// How it is spread over the threads.
    pub placement: Placement,
    /// What this thread has of its concurrency, if several threads share it.
    pub borrowed: Option<Box<Borrowed>>,
    /// Attempts open now.
    pub in_flight: u32,
    /// Whether it stands in its host's queue.
    pub queued: bool,
    /// How long its requests take.
    pub service: Service,
    /// As which class its hosts know it.
    pub class: Class,
    /// The share of its host's connections that it has, and has not used yet.
    pub share: Option<Class>,
    /// That it waits for one.
    pub waits: Option<WaitsForShare>,
    /// Where most of its notifications go.
    pub host: usize,
    /// By action, where they go.
    pub hosts: [usize; 3],
    /// How it has fared lately.
    pub fortune: Luck,
    /// The operator was told that it fails, and not yet that it works again.
    pub recovering: bool,
    /// The rate limit's bucket, once something was taken from it, unless several threads share it.
    pub bucket: Option<Box<Bucket>>,
    /// The earliest wake-up that is set, monotonic.
    pub alarm: Duration,
    /// While it is passive.
    pub passive: Option<Box<Passive>>,
    /// While any is out, whatever the mode is by now.
    pub leases: Option<Box<Leases>>,
}

/// That a subscription waits for its share, and where.
#[derive(Clone, Copy, Debug)]
pub struct WaitsForShare {
    /// As which class.
    pub class: Class,
    /// In which place.
    pub ticket: Ticket,
}

/// Since when a subscription stands still.
#[derive(Clone, Copy, Debug)]
pub struct Stood {
    /// As far as this thread has seen it. It moves with the clock.
    since: Timestamp,
    /// It stood still before: when it was found so, by the clock of that time.
    found: Option<Timestamp>,
}

impl Stood {
    /// How long it has stood still by now. `stored` is since when, as the catalog has it.
    pub fn lasted(&self, now: Timestamp, stored: Timestamp) -> Duration {
        now.since(self.since) + self.found.map_or(Duration::ZERO, |found| found.since(stored))
    }

    /// One that stood still when it came to this thread.
    pub fn found(now: Timestamp) -> Stood {
        Stood { since: now, found: Some(now) }
    }
}

impl Subscriber {
    /// One that is taken over. `hosts` is where it sends to, by action.
    pub fn new(
        compiled: Arc<Compiled>,
        lanes: Lanes,
        hosts: [usize; 3],
        placement: Placement,
        standstill: Standstill,
        now: Timestamp,
    ) -> Subscriber {
        let stands = standstill != Standstill::None;
        Subscriber {
            compiled,
            standstill,
            decision: None,
            stood: stands.then(|| Stood::found(now)),
            lanes,
            unread: VecDeque::new(),
            due: VecDeque::new(),
            placement,
            borrowed: None,
            in_flight: 0,
            queued: false,
            service: Service::default(),
            class: Class::New,
            share: None,
            waits: None,
            host: hosts[1],
            hosts,
            fortune: Luck::default(),
            recovering: false,
            bucket: None,
            alarm: Duration::MAX,
            passive: None,
            leases: None,
        }
    }

    /// Stops it or lets it go. Answers since when it stood still if it goes on only now.
    pub fn stand(&mut self, standstill: Standstill, now: Timestamp) -> Option<Stood> {
        let stood = std::mem::replace(&mut self.standstill, standstill) != Standstill::None;
        match (stood, self.standstill != Standstill::None) {
            (false, true) => {
                self.stood = Some(Stood { since: now, found: None });
                None
            }
            (true, false) => self.stood.take(),
            (true, true) | (false, false) => None,
        }
    }

    /// The wall clock was set, by so many milliseconds: what is kept of it moves along.
    pub fn clock_moved(&mut self, by: i64) {
        self.fortune.clock_moved(by);
        self.stood = self.stood.map(|stood| Stood { since: stood.since.moved(by), ..stood });
    }

    /// Whether nothing may begin now.
    pub fn stands(&self) -> bool {
        self.standstill != Standstill::None
    }

    /// How many attempts may be open now.
    pub fn room(&self) -> u32 {
        let most = self.fortune.room(self.compiled.spec.concurrency);
        self.passive.as_ref().map_or(most, |passive| passive.room(self.in_flight).min(most))
    }

    /// Whether its client may be asked though others got no answer from the host: it has had no failure of its own, and
    /// this would be its only request.
    pub fn is_innocent(&self) -> bool {
        self.fortune.failures == 0 && self.in_flight == 0
    }

    /// Whether other threads have all of its concurrency that this one does not.
    pub fn waits_for_concurrency(&self) -> bool {
        self.borrowed.as_ref().is_some_and(|borrowed| borrowed.is_waiting(self.in_flight))
    }

    /// The delivery on request that is under way.
    pub fn drive(&mut self) -> Option<&mut Drive> {
        self.passive.as_mut()?.drive.as_mut()
    }

    /// How long its rate limit has it wait for the next attempt.
    pub fn rate_wait(&mut self, now: Duration) -> Duration {
        self.with_bucket(now, |bucket| bucket.wait(now)).unwrap_or_default()
    }

    /// Takes of its rate limit what [`Subscriber::rate_wait`] said is there.
    pub fn rate_take(&mut self, now: Duration) {
        self.with_bucket(now, Bucket::take);
    }

    fn with_bucket<T>(&mut self, now: Duration, with: impl FnOnce(&mut Bucket) -> T) -> Option<T> {
        let limit = self.compiled.spec.rate_limit?;
        Some(match &self.borrowed {
            None => with(Bucket::following(&mut self.bucket, limit, now)),
            Some(borrowed) => with(Bucket::following(&mut borrowed.common.bucket.lock(), limit, now)),
        })
    }

    /// The longest that a document may have to wait for a retry. A client that pulls says itself how long.
    pub fn longest_wait(&self, maximum_lease: Duration) -> Duration {
        let longest = self.compiled.spec.retry.longest();
        if self.passive.is_some() { longest.max(maximum_lease) } else { longest }
    }

    /// How many documents wait for a retry.
    pub fn waiting(&self) -> usize {
        self.lanes.noted().waiting as usize
    }

    /// Whether one more document may be read because its turn has come: as many as may be sent now. What was read is at
    /// the front of `due`, and taken before more is read.
    pub fn may_fetch(&self) -> bool {
        let most = match self.passive {
            Some(_) => FETCHES,
            None => self.room().saturating_sub(self.in_flight).max(1),
        };
        self.lanes.iter().map(|slot| slot.aside.fetching).sum::<u32>() < most
    }

    /// Lets go of documents in memory that cannot be sent soon: they are read again when their turn comes. But for this
    /// one, if it was read because its turn has come.
    pub fn let_go_of_documents(&mut self, next: Option<(u8, Ordinal)>) {
        for slot in self.lanes.iter_mut() {
            let Some(aside) = slot.aside.any() else { continue };
            aside.page = None;
            match next {
                Some((lane, ordinal)) if lane == slot.id.lane => {
                    aside.fetched.keep_only(&ordinal);
                    aside.looked.keep_only(&ordinal);
                }
                _ => {
                    aside.fetched.clear();
                    aside.looked.clear();
                }
            }
        }
    }

    /// Whether a document that is due was tried before, and its policy said that it is due now.
    fn is_retry(&self, (lane, ordinal): (u8, Ordinal)) -> bool {
        let Some(slot) = self.lanes.get(lane) else { return false };
        let standing = slot.feed.waiting().get(&ordinal);
        let tried = standing.and_then(|standing| standing.trouble.as_ref());
        tried.is_some_and(|trouble| trouble.attempts > 0) && !slot.feed.is_to_be_decided_again(ordinal)
    }

    /// Where in `due` the next document is that may be sent. A client that struggles is tried with what it was tried with
    /// before, as long as any of that is due: it was due before whatever else is there.
    pub fn next_due(&self, ask: Ask) -> Option<usize> {
        let all = !self.fortune.struggling();
        let retry = || self.due.iter().position(|due| self.is_retry(*due));
        match ask {
            _ if all => (!self.due.is_empty()).then_some(0),
            Ask::Retry => retry(),
            Ask::First => retry().or((!self.due.is_empty()).then_some(0)),
        }
    }

    /// While its client is asked one thing at a time: since when, and when it is asked next. `now` is by the wall clock of
    /// the thread, `monotonic` the same moment.
    pub fn throttle(&self, now: Timestamp, monotonic: Duration) -> Option<Throttle> {
        let since = self.fortune.struggling_since()?;
        let quiet = self.in_flight > 0 || self.stands() || self.passive.is_some();
        let next = (!quiet).then(|| self.next_request(now, monotonic)).flatten();
        let at = |at: Duration| now.saturating_add(at.saturating_sub(monotonic));
        Some(Throttle { since, next: next.map(at) })
    }

    /// When a client that struggles is asked next, with nothing open.
    fn next_request(&self, now: Timestamp, monotonic: Duration) -> Option<Duration> {
        let waiting = self.lanes.iter().flat_map(|slot| slot.feed.waiting().values());
        let dues = waiting.filter_map(|standing| match (&standing.state, &standing.trouble) {
            (State::Waiting { due }, Some(trouble)) if trouble.attempts > 0 => Some(*due),
            _ => None,
        });
        let retry = dues.min().map(|due| monotonic + due.since(now));
        let untried = self.due.iter().any(|due| !self.is_retry(*due)) || !self.unread.is_empty();
        self.fortune.next(retry, untried)
    }

    /// Puts a lane among those with something unread.
    pub fn mark_unread(&mut self, lane: u8) {
        let slot = &mut self.lanes[lane];
        if !slot.queued {
            slot.queued = true;
            self.unread.push_back(lane);
        }
    }
}
