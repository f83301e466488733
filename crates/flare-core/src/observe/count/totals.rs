//! All that was counted, at one time: plain numbers, the threads summed up.

use flare_model::document::Outcome as Change;

use super::histogram::{Distribution, TIMES};
use super::thread::{ENDINGS, LEASES, Thread};
use super::{Counts, NOTICES, POSTS, REFUSALS, REMOVALS, numbers};
use crate::observe::Outcome;

/// All numbers since the process began.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Documents of origins, by [`Change`].
    pub outcomes: [u64; Change::ALL.len()],
    /// Documents refused, in the order of [`REFUSALS`].
    pub refused: [u64; REFUSALS.len()],
    /// Bytes of documents committed.
    pub bytes: u64,
    /// How long commits took, from the origin's side.
    pub commit: Distribution,
    /// Changes in each commit.
    pub group: Distribution,
    /// In the order of [`NOTICES`].
    pub notices: [u64; NOTICES.len()],
    /// In the order of [`POSTS`].
    pub posts: [u64; POSTS.len()],
    /// Replays begun.
    pub replays: u64,
    /// Tombstones removed.
    pub tombstones: u64,
    /// Older revisions removed, in the order of [`REMOVALS`].
    pub revisions: [u64; REMOVALS.len()],
    /// By [`Outcome`] and in the order of [`ENDINGS`].
    pub attempts: [[u64; ENDINGS.len()]; Outcome::NAMES.len()],
    /// How long attempts took.
    pub attempt: Distribution,
    /// Bytes of bodies that went to clients.
    pub sent: u64,
    /// From acceptance to the client.
    pub latency: Distribution,
    /// Attempts after which another one follows.
    pub retries: u64,
    /// Notifications given up.
    pub given_up: u64,
    /// Hosts left alone.
    pub breakers: u64,
    /// Feeds written.
    pub records: u64,
    /// How long writing them took.
    pub record: Distribution,
    /// Notifications handed out.
    pub leased: u64,
    /// In the order of [`LEASES`].
    pub leases: [u64; LEASES.len()],
}

impl Totals {
    /// How much has happened at all: the same number twice means that nothing did in between.
    pub fn events(&self) -> u64 {
        let attempts: u64 = self.attempts.iter().flatten().sum();
        self.outcomes.iter().sum::<u64>() + attempts + self.records + self.replays
    }

    /// What is not counted by delivery threads.
    pub(super) fn of(counts: &Counts) -> Totals {
        let Counts { origin, engine, operator, retention, .. } = counts;
        Totals {
            outcomes: numbers(&origin.outcomes),
            refused: numbers(&origin.refused),
            bytes: origin.bytes.get(),
            commit: origin.commit.read(),
            group: engine.group.read(),
            notices: numbers(&operator.notices),
            posts: numbers(&operator.posts),
            replays: operator.replays.get(),
            tombstones: retention.tombstones.get(),
            revisions: numbers(&retention.revisions),
            attempts: Default::default(),
            attempt: Distribution::empty(&TIMES),
            sent: 0,
            latency: Distribution::empty(&TIMES),
            retries: 0,
            given_up: 0,
            breakers: 0,
            records: 0,
            record: Distribution::empty(&TIMES),
            leased: 0,
            leases: Default::default(),
        }
    }

    /// And what one of them counted.
    pub(super) fn add(&mut self, thread: &Thread) {
        for (mine, its) in self.attempts.iter_mut().zip(&thread.attempts) {
            mine.iter_mut().zip(numbers(its)).for_each(|(mine, its)| *mine += its);
        }
        self.leases.iter_mut().zip(numbers(&thread.leases)).for_each(|(mine, its)| *mine += its);
        self.attempt.add(&thread.attempt.read());
        self.latency.add(&thread.latency.read());
        self.record.add(&thread.record.read());
        self.sent += thread.sent.get();
        self.retries += thread.retries.get();
        self.given_up += thread.given_up.get();
        self.breakers += thread.breakers.get();
        self.records += thread.records.get();
        self.leased += thread.leased.get();
    }

    /// Documents that changed something.
    pub fn changes(&self) -> u64 {
        [Change::Created, Change::Updated, Change::Deleted]
            .map(|change| self.outcomes[change as usize])
            .iter()
            .sum()
    }

    /// Documents that changed nothing.
    pub fn unchanged(&self) -> u64 {
        self.outcomes.iter().sum::<u64>() - self.changes()
    }

    /// Documents refused, whatever the reason.
    pub fn all_refused(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// Attempts that ended so.
    pub fn attempts(&self, outcome: Outcome) -> u64 {
        self.attempts[outcome as usize].iter().sum()
    }

    /// Notifications that arrived, sent or taken away by the client itself.
    pub fn delivered(&self) -> u64 {
        self.attempts(Outcome::Delivered) + self.leases[0]
    }

    /// Notifications that the client dropped on purpose, by either way.
    pub fn discarded(&self) -> u64 {
        self.attempts(Outcome::Discarded) + self.leases[1]
    }

    /// Attempts that failed, and leases that came back.
    pub fn failed(&self) -> u64 {
        self.attempts(Outcome::Failed) + self.leases[2] + self.leases[3]
    }
}
