//! How much a client is asked, by how its requests ended. In: when each began and ended, and how. Out: how many may be
//! open, and not before when the next may begin. Pure; durations are moments of the monotonic clock.
//!
//! Requests that were open at the same time and fail are one failure: a client that fails for a moment fails once, however
//! many requests meet it. After [`STRUGGLING`] such failures in a row, or one timeout, a client *struggles* until one
//! succeeds: it is asked one thing at a time. A retry is asked when its policy says, so that the plan of a policy is what
//! happens and a client that is back is found by the next retry that is due. What the throttle keeps back is what has no
//! plan yet: documents that were not tried come one by one, after gaps that grow up to the policy's own interval.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::retry::RetryPolicy;
use crate::time::Timestamp;

/// So many failures in a row, and a client is asked one thing at a time.
pub const STRUGGLING: u32 = 5;
/// While a client fails, at most so many documents wait for it; the rest stays in the log.
pub const WAITING_WHILE_STRUGGLING: usize = 16;

const SHORTEST_GAP: Duration = Duration::from_millis(10);
const LONGEST_GAP: Duration = Duration::from_secs(10);

/// The longest time that a client which struggles is not asked for a document it was not tried with: the policy's
/// interval, ten seconds at most.
pub fn longest_gap(policy: &RetryPolicy) -> Duration {
    policy.interval.0.min(LONGEST_GAP)
}

/// What a client may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A document that it was tried with before, whose policy says when.
    Retry,
    /// One that it was not tried with.
    First,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// What it asked.
    pub ask: Ask,
    /// When it began.
    pub began: Duration,
    /// When it ended.
    pub ended: Duration,
}

/// A client that is asked one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// Since when.
    pub since: Timestamp,
    /// When the next request is to begin; nothing while one is open, or nothing is to be sent.
    pub next: Option<Timestamp>,
}

/// How a client has fared lately.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fortune {
    /// Failures since the last success. Those of requests that were open at the same time count once.
    pub failures: u32,
    /// When the first of them ended. It moves with the wall clock when that is set.
    pub failing_since: Option<Timestamp>,
    /// The operator was told that it fails.
    pub told: bool,
    /// Of the time since then, how long nothing was tried because no process was there.
    pub untried: Duration,
    /// The last one was a timeout: such a client gets one slot.
    pub hangs: bool,
    /// When the last failure that counts ended: whatever began before belongs to it.
    counted: Duration,
    /// Since when the client is asked one thing at a time, by the wall clock.
    struggling_since: Option<Timestamp>,
    /// While it is: not before this time is it asked for a document it was not tried with.
    first_at: Duration,
    /// The client asked to be left alone until then.
    rest_until: Duration,
    /// How many requests may be open while the client says it is too much; 0: as many as the subscription says.
    allowance: f32,
    /// When it last said so: whatever began before said the same.
    lowered: Option<Duration>,
}

impl Fortune {
    /// Of a client that has always been well.
    pub const WELL: Fortune = Fortune {
        failures: 0,
        failing_since: None,
        told: false,
        untried: Duration::ZERO,
        hangs: false,
        counted: Duration::ZERO,
        struggling_since: None,
        first_at: Duration::ZERO,
        rest_until: Duration::ZERO,
        allowance: 0.0,
        lowered: None,
    };

    /// Whether nothing has succeeded lately, so that the client is asked one thing at a time.
    pub fn struggling(&self) -> bool {
        self.struggling_since.is_some()
    }

    /// Since when it is so.
    pub fn struggling_since(&self) -> Option<Timestamp> {
        self.struggling_since
    }

    /// Until when the client wants to be left alone.
    pub fn rest_until(&self) -> Duration {
        self.rest_until
    }

    /// A success: a client that struggled is asked as before; one that said "too much" gets a little more each time.
    pub fn succeeded(&mut self, concurrency: u32) {
        if self.failures > 0 || self.failing_since.is_some() {
            let Fortune { allowance, lowered, rest_until, .. } = *self;
            *self = Fortune { allowance, lowered, rest_until, ..Fortune::default() };
        }
        if self.allowance > 0.0 {
            self.allowance += 1.0 / self.allowance;
            if self.allowance >= concurrency as f32 {
                self.allowance = 0.0;
            }
        }
    }

    /// An earlier process saw failures from `since` to `until`, and nobody has tried anything by `now`. How much the client
    /// is asked is found out anew.
    pub fn remember(&mut self, since: Timestamp, until: Timestamp, now: Timestamp, failing_after: Duration) {
        self.failing_since = Some(since);
        self.untried = now.since(until);
        self.told = until.since(since) >= failing_after;
    }

    /// A request failed, `at` this time by the wall clock, by a timeout or not.
    pub fn failed(&mut self, request: Ended, at: Timestamp, hangs: bool, policy: &RetryPolicy) {
        self.failing_since.get_or_insert(at);
        self.hangs = hangs;
        if self.failures == 0 || request.began >= self.counted {
            self.failures = self.failures.saturating_add(1);
            self.counted = request.ended;
        }
        let struggles = self.failures >= STRUGGLING || hangs;
        let begins = struggles && self.struggling_since.is_none();
        if !struggles {
            self.struggling_since = None;
        } else if begins {
            self.struggling_since = Some(at);
        }
        // Retries have times of their own and do not put this off: documents that always fail must not keep the others
        // from being tried.
        if begins || struggles && request.ask == Ask::First {
            let doublings = self.failures.saturating_sub(STRUGGLING).min(16);
            let gap = SHORTEST_GAP.saturating_mul(1 << doublings);
            self.first_at = request.ended + gap.min(longest_gap(policy));
        }
    }

    /// The client said "too much", with `open` requests on their way beside this one: half of that from now on, once for
    /// all that were open then. It may have said for how long it wants to be left alone.
    pub fn throttled(&mut self, request: Ended, open: u32, asked: Duration) {
        self.rest_until = self.rest_until.max(request.ended + asked);
        if self.lowered.is_some_and(|lowered| request.began < lowered) {
            return;
        }
        let had = (open + 1) as f32;
        let had = if self.allowance > 0.0 { had.min(self.allowance) } else { had };
        self.allowance = (had / 2.0).max(1.0);
        self.lowered = Some(request.ended);
    }

    /// How many requests may be open of those the subscription allows.
    pub fn room(&self, concurrency: u32) -> u32 {
        if self.struggling() {
            1
        } else if self.allowance > 0.0 {
            concurrency.min(self.allowance as u32).max(1)
        } else {
            concurrency
        }
    }

    /// Not before this time may the client be asked.
    pub fn not_before(&self, ask: Ask) -> Duration {
        match ask {
            Ask::First if self.struggling() => self.first_at.max(self.rest_until),
            Ask::First | Ask::Retry => self.rest_until,
        }
    }

    /// When a client with nothing open is asked next: the first retry is due at `retry`, and there is a document that it
    /// was not tried with, or not.
    pub fn next(&self, retry: Option<Duration>, first: bool) -> Option<Duration> {
        let retry = retry.map(|due| due.max(self.not_before(Ask::Retry)));
        let first = first.then(|| self.not_before(Ask::First));
        retry.into_iter().chain(first).min()
    }

    /// Somebody wants to know now whether the client works: what it was not tried with may be tried at once.
    pub fn try_now(&mut self) {
        self.first_at = Duration::ZERO;
    }

    /// The wall clock was set, by so many milliseconds.
    pub fn clock_moved(&mut self, by: i64) {
        self.failing_since = self.failing_since.map(|since| since.moved(by));
        self.struggling_since = self.struggling_since.map(|since| since.moved(by));
    }
}
