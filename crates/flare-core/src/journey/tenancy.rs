//! Until when this node may act for others to see, in a cluster: its lease, as delivery threads look at it, and what they
//! tell about lanes that another node has by now. A node by itself has none of this.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flare_model::ids::{LaneId, Seq, SubscriptionNumber};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

/// Lanes that were lost and are not heard of yet. When full: the rest is noticed with their next record.
const LOST: usize = 1024;

/// A lane whose record the ledger refused, because somebody opened it under a later epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Whose it is.
    pub number: SubscriptionNumber,
    /// Which.
    pub lane: u8,
    /// Under which it was open here.
    pub epoch: u64,
}

/// What a node may do, and what became of that.
pub struct Tenancy {
    /// On the monotonic clock, in milliseconds.
    acts_until: AtomicU64,
    /// The same for the end of the lease itself.
    deadline: AtomicU64,
    /// Delivery threads that do not answer, a bit each: there are 64 at most.
    silenced: AtomicU64,
    /// Rung when there is one more.
    silence: Notify,
    /// Lanes that this node has written, for the others to look at. Bound: each lane once.
    moved: Mutex<BTreeMap<LaneId, Seq>>,
    moves: Notify,
    /// Lanes in which this node wrote after others did, and which have to be read. Bound: each lane once.
    gaps: Mutex<BTreeMap<LaneId, Seq>>,
    gap: Notify,
    /// Bound: [`LOST`].
    lost: mpsc::Sender<Lost>,
    /// Units that were cut: what was known of them and not recorded is lost.
    pub cut_units: AtomicU64,
    /// Records that the ledger refused.
    pub fenced_writes: AtomicU64,
    /// Attempts that were cut off.
    pub cut_attempts: AtomicU64,
    /// Of these, the ones that were open beyond the end of the lease.
    pub late_requests: AtomicU64,
}

impl Tenancy {
    /// Nothing may be done yet.
    pub fn new() -> (Tenancy, mpsc::Receiver<Lost>) {
        let (lost, heard) = mpsc::channel(LOST);
        let zero = || AtomicU64::new(0);
        let tenancy = Tenancy {
            acts_until: zero(),
            deadline: zero(),
            silenced: zero(),
            silence: Notify::new(),
            moved: Mutex::default(),
            moves: Notify::new(),
            gaps: Mutex::default(),
            gap: Notify::new(),
            lost,
            cut_units: zero(),
            fenced_writes: zero(),
            cut_attempts: zero(),
            late_requests: zero(),
        };
        (tenancy, heard)
    }

    /// The lease holds until `deadline`, and nothing is begun from `acts_until` on.
    pub fn extend(&self, acts_until: Duration, deadline: Duration) {
        let millis = |at: Duration| u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        self.acts_until.store(millis(acts_until), Ordering::Release);
        self.deadline.store(millis(deadline), Ordering::Release);
    }

    /// Whether a delivery thread may begin something at this moment.
    pub fn holds(&self, now: Duration, thread: usize) -> bool {
        now.as_millis() < u128::from(self.acts_until.load(Ordering::Acquire)) && !self.is_silenced(thread)
    }

    /// A delivery thread does not answer: what it has may be given to others, and when it goes on it begins nothing.
    pub fn silence(&self, thread: usize) {
        self.silenced.fetch_or(1 << thread, Ordering::AcqRel);
        self.silence.notify_waiters();
    }

    /// It answers, and knows what was taken from it.
    pub fn unsilence(&self, thread: usize) {
        self.silenced.fetch_and(!(1 << thread), Ordering::AcqRel);
    }

    /// Whether a delivery thread was silenced.
    pub fn is_silenced(&self, thread: usize) -> bool {
        self.silenced.load(Ordering::Acquire) & (1 << thread) != 0
    }

    /// Returns once one of these delivery threads was silenced.
    pub async fn until_silenced(&self, threads: &[usize]) {
        loop {
            let silence = self.silence.notified();
            if threads.iter().any(|thread| self.is_silenced(*thread)) {
                return;
            }
            silence.await;
        }
    }

    /// Attempts are cut off.
    pub fn cut(&self, attempts: u64, now: Duration) {
        self.cut_attempts.fetch_add(attempts, Ordering::Relaxed);
        if now.as_millis() >= u128::from(self.deadline.load(Ordering::Acquire)) {
            self.late_requests.fetch_add(attempts, Ordering::Relaxed);
        }
    }

    /// This node has written lanes up to these changes; some of them `beyond` what it knew of a lane.
    pub fn moved(&self, lanes: impl Iterator<Item = (LaneId, Seq)>, beyond: bool) {
        let lanes: Vec<(LaneId, Seq)> = lanes.collect();
        if beyond {
            self.gaps.lock().extend(lanes.iter().copied());
            self.gap.notify_one();
        }
        self.moved.lock().extend(lanes);
        self.moves.notify_one();
    }

    /// Waits until this node wrote behind others; says in which lanes, and how far.
    pub async fn wait_for_gaps(&self) -> BTreeMap<LaneId, Seq> {
        loop {
            let gaps = std::mem::take(&mut *self.gaps.lock());
            if !gaps.is_empty() {
                return gaps;
            }
            self.gap.notified().await;
        }
    }

    /// Waits until there are lanes that others may want to look at.
    pub async fn wait_for_moves(&self) {
        self.moves.notified().await;
    }

    /// Those lanes, each with its newest change.
    pub fn take_moved(&self) -> BTreeMap<LaneId, Seq> {
        std::mem::take(&mut *self.moved.lock())
    }

    /// A record was refused.
    pub fn fenced(&self, lost: Lost) {
        self.fenced_writes.fetch_add(1, Ordering::Relaxed);
        // What is not heard of now is refused again.
        let _ = self.lost.try_send(lost);
    }
}
