//! What is counted: every stage leaves its numbers here, whoever wants them reads the sums.
//!
//! A delivery thread has a block of its own that nobody else writes to, so that counting is a load and a store of
//! memory that is in its cache, and no two threads wait for each other. What is counted once per request of an origin
//! or more seldom is shared.

mod histogram;
mod origin;
mod refusing;
mod thread;
mod totals;
mod traffic;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use histogram::{Distribution, Histogram};
#[cfg(test)]
pub use histogram::{QUANTITIES, TIMES};
pub use origin::{Engine, Origin, REFUSALS, Refusal};
pub use thread::{ENDINGS, LEASES, Thread, micros};
pub use totals::Totals;
pub use traffic::{Asked, ENDS, Traffic, Underway};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// So many more, from the only thread that writes here: not one instruction that other threads would notice.
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// So many more, from any thread.
    pub fn add_among_many(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// How many there are.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// All that is counted in this process. It begins at zero with it.
#[derive(Debug)]
pub struct Counts {
    /// What origins said.
    pub origin: Origin,
    /// What the engine committed.
    pub engine: Engine,
    /// What the operator asked for and was told.
    pub operator: Operator,
    /// What was kept for long enough.
    pub retention: Retention,
    threads: Vec<Arc<Thread>>,
}

/// What the operator asked for and was told.
#[derive(Debug, Default)]
pub struct Operator {
    /// Subscriptions that were found failing, that recovered, and that were disabled.
    pub notices: [Count; NOTICES.len()],
    /// Posts to `notify.url`, by what became of them.
    pub posts: [Count; POSTS.len()],
    /// Replays that were begun.
    pub replays: Count,
}

/// What the operator is told, in the order of [`Operator::notices`].
pub const NOTICES: [&str; 3] = ["failing", "recovered", "disabled"];

/// A notice.
#[derive(Clone, Copy, Debug)]
pub enum Notice {
    /// Nothing has succeeded for long.
    Failing,
    /// Something succeeded again.
    Recovered,
    /// It was stopped.
    Disabled,
}

/// What becomes of a post to `notify.url`, in the order of [`Operator::posts`].
pub const POSTS: [&str; 3] = ["posted", "failed", "dropped"];

/// What became of a post.
#[derive(Clone, Copy, Debug)]
pub enum Post {
    /// It was taken.
    Posted,
    /// It was given up.
    Failed,
    /// Too many were waiting.
    Dropped,
}

/// What was kept for long enough and is gone.
#[derive(Debug, Default)]
pub struct Retention {
    /// Deleted documents that are no longer remembered.
    pub tombstones: Count,
    /// Older revisions, in the order of [`REMOVALS`].
    pub revisions: [Count; REMOVALS.len()],
}

/// Why older revisions go, in the order of [`Retention::revisions`]: everybody has what they need of them, or there were
/// too many or too old ones and somebody will not get them.
pub const REMOVALS: [&str; 2] = ["done", "lost"];

impl Operator {
    /// The operator is told of something.
    pub fn told(&self, notice: Notice) {
        self.notices[notice as usize].add_among_many(1);
    }

    /// What became of posting it.
    pub fn post(&self, post: Post) {
        self.posts[post as usize].add_among_many(1);
    }
}

impl Counts {
    /// For so many delivery threads.
    pub fn new(threads: usize) -> Counts {
        Counts {
            origin: Origin::new(),
            engine: Engine::new(),
            operator: Operator::default(),
            retention: Retention::default(),
            threads: (0..threads).map(|_| Arc::new(Thread::new())).collect(),
        }
    }

    /// The block of a delivery thread.
    pub fn thread(&self, thread: usize) -> Arc<Thread> {
        self.threads[thread].clone()
    }

    /// All numbers, each read once. They are read one after the other while others count on, so two of them may differ
    /// by what happened between.
    pub fn read(&self) -> Totals {
        let mut totals = Totals::of(self);
        self.threads.iter().for_each(|thread| totals.add(thread));
        totals
    }
}

/// The numbers of an array of counts.
fn numbers<const N: usize>(counts: &[Count; N]) -> [u64; N] {
    std::array::from_fn(|index| counts[index].get())
}
