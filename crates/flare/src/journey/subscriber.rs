//! A subscription on its delivery thread: its feeds, what is ready to be taken, and how it has fared.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::Feed;
use flare_model::ids::{FeedId, Ordinal};
use flare_model::subscription::RateLimit;
use flare_model::time::Timestamp;

use super::change::Change;
use super::compiled::Compiled;
use super::pages::Loaded;
use super::tail::LaneTail;

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
    /// Whether it may begin attempts.
    pub standstill: Standstill,
    /// By lane.
    pub lanes: Vec<FeedLane>,
    /// Lanes with something unread. Bound: each lane once.
    pub unread: VecDeque<u8>,
    /// Documents whose retry is due or that are to be decided again. Bound: those waiting, see `waiting-limit`.
    pub due: VecDeque<(u8, Ordinal)>,
    /// Attempts open now.
    pub in_flight: u32,
    /// Whether it stands in its host's queue.
    pub queued: bool,
    /// Where most of its notifications go.
    pub host: usize,
    /// By action, where they go.
    pub hosts: [usize; 3],
    /// How it has fared lately.
    pub fortune: Fortune,
    /// The rate limit's bucket.
    pub bucket: Option<Bucket>,
    /// The earliest wake-up that is set, monotonic.
    pub alarm: Duration,
}

/// One lane of a subscription.
pub struct FeedLane {
    /// Its id.
    pub id: FeedId,
    /// The rules.
    pub feed: Feed,
    /// The changes.
    pub tail: Arc<LaneTail>,
    /// In `unread`.
    pub queued: bool,
    /// In the lane's list of those parked at its end.
    pub parked: bool,
    /// A part of the store, while the feed is behind the tail.
    pub page: Option<Loaded>,
    /// A page or document is being read.
    pub loading: bool,
    /// Documents read for a retry. Bound: those in `due`.
    pub fetched: BTreeMap<Ordinal, (Arc<Change>, flare_model::ids::Seq)>,
    /// In the recorder's list.
    pub dirty: bool,
    /// Waits for a record (a higher mark) before it can go on.
    pub wants_record: bool,
    /// Handed over by the sweep, to be sent once recorded. Bound: a page.
    pub swept: Vec<Ordinal>,
    /// The sweep's page is being read.
    pub sweeping: bool,
}

/// Recent success and failure, which decide how much a client is asked.
#[derive(Default)]
pub struct Fortune {
    /// Failures since the last success.
    pub failures: u32,
    /// When the first of them ended.
    pub failing_since: Option<Timestamp>,
    /// The last one was a timeout: such a client gets one slot.
    pub hangs: bool,
    /// Not before this time (monotonic) is the next probe.
    pub probe_at: Duration,
}

/// So many failures in a row, and a client is asked one thing at a time.
const STRUGGLING: u32 = 5;
const LONGEST_PROBE_GAP: Duration = Duration::from_secs(10);

impl Fortune {
    /// Whether nothing has succeeded lately, so that only probes are sent.
    pub fn struggling(&self) -> bool {
        self.failures >= STRUGGLING || self.hangs
    }

    /// A success: everything is open again.
    pub fn succeeded(&mut self) {
        *self = Fortune::default();
    }

    /// A failure at `at`; `now` is monotonic.
    pub fn failed(&mut self, at: Timestamp, now: Duration, hangs: bool) {
        self.failures = self.failures.saturating_add(1);
        self.failing_since.get_or_insert(at);
        self.hangs = hangs;
        if self.struggling() {
            let doublings = self.failures.saturating_sub(STRUGGLING).min(16);
            let gap = Duration::from_millis(10).saturating_mul(1 << doublings);
            self.probe_at = now + gap.min(LONGEST_PROBE_GAP);
        }
    }
}

/// A token bucket: `quantity` tokens, refilled evenly over `interval`.
pub struct Bucket {
    tokens: f64,
    at: Duration,
    limit: RateLimit,
}

impl Bucket {
    /// An empty bucket: after a restart there is no burst that was not earned.
    pub fn new(limit: RateLimit, now: Duration) -> Bucket {
        Bucket { tokens: 1.0, at: now, limit }
    }

    fn per_second(&self) -> f64 {
        f64::from(self.limit.quantity) / self.limit.interval.0.as_secs_f64()
    }

    fn refill(&mut self, now: Duration) {
        let earned = now.saturating_sub(self.at).as_secs_f64() * self.per_second();
        self.tokens = (self.tokens + earned).min(f64::from(self.limit.quantity).max(1.0));
        self.at = now;
    }

    /// Zero when a token is there, else how long until there is one.
    pub fn wait(&mut self, now: Duration) -> Duration {
        self.refill(now);
        if self.tokens >= 1.0 {
            return Duration::ZERO;
        }
        Duration::from_secs_f64((1.0 - self.tokens) / self.per_second()).max(Duration::from_millis(1))
    }

    /// Takes a token that [`Bucket::wait`] said is there.
    pub fn take(&mut self) {
        self.tokens -= 1.0;
    }
}

impl Subscriber {
    /// How many attempts may be open now.
    pub fn room(&self) -> u32 {
        if self.fortune.struggling() { 1 } else { self.compiled.spec.concurrency }
    }

    /// How many documents wait for a retry.
    pub fn waiting(&self) -> usize {
        self.lanes.iter().map(|lane| lane.feed.waiting().len()).sum()
    }

    /// Puts a lane among those with something unread.
    pub fn mark_unread(&mut self, lane: u8) {
        let slot = &mut self.lanes[usize::from(lane)];
        if !slot.queued {
            slot.queued = true;
            self.unread.push_back(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::duration::HumanDuration;

    #[test]
    fn a_bucket_gives_no_more_than_its_rate() {
        let limit = RateLimit { quantity: 100, interval: HumanDuration(Duration::from_secs(1)) };
        let mut bucket = Bucket::new(limit, Duration::ZERO);
        let (mut now, mut taken) = (Duration::ZERO, 0);
        while now < Duration::from_secs(10) {
            match bucket.wait(now) {
                Duration::ZERO => {
                    bucket.take();
                    taken += 1;
                }
                wait => now += wait,
            }
        }
        assert!((950..=1020).contains(&taken), "{taken} in ten seconds");
    }

    #[test]
    fn a_success_ends_the_struggle() {
        let mut fortune = Fortune::default();
        for _ in 0..10 {
            fortune.failed(Timestamp::from_millis(0), Duration::ZERO, false);
        }
        assert!(fortune.struggling());
        assert!(fortune.probe_at > Duration::ZERO);
        fortune.succeeded();
        assert!(!fortune.struggling());
    }
}
