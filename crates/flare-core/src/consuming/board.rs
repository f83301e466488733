//! What is known of a consumer while it runs here: its readers write, whoever asks reads.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use flare_model::consumer::{Condition, Failed, Progress};
use flare_model::time::Timestamp;
use flare_provider::bridge::Lag;
use parking_lot::Mutex;

/// Over how long the rate of messages is counted.
const WINDOW: Duration = Duration::from_secs(10);

/// What is known of a consumer.
#[derive(Default)]
pub struct Board {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// How finding its partitions fares: the word, since when, and why.
    finding: (Condition, Option<Timestamp>, Option<String>),
    /// What went wrong last with that.
    not_found: Option<Failed>,
    /// Bound: one for each partition of the source.
    partitions: BTreeMap<String, Part>,
    /// Messages by the second in which they came. Bound: the seconds of [`WINDOW`].
    lately: VecDeque<(u64, u64)>,
}

/// What is known of a partition.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The epoch under which it is read.
    pub epoch: u64,
    /// How far.
    pub progress: Progress,
    /// Why it does not read, where it does not.
    pub why: Option<String>,
    /// How far behind.
    pub lag: Lag,
}

/// A consumer as it is now.
#[derive(Clone, Debug)]
pub struct Now {
    /// How it fares.
    pub condition: Condition,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Why, where it does not read.
    pub reason: Option<String>,
    /// Its partitions.
    pub partitions: BTreeMap<String, Part>,
    /// What went wrong last with finding them.
    pub not_found: Option<Failed>,
    /// Messages in a second, lately.
    pub rate: f64,
}

impl Board {
    /// How finding the partitions fares.
    pub fn finding(&self, condition: Condition, at: Timestamp, why: Option<String>) {
        let mut inner = self.inner.lock();
        let since = match inner.finding.0 == condition {
            true => inner.finding.1.or(Some(at)),
            false => Some(at),
        };
        if let Some(error) = &why {
            inner.not_found = Some(Failed { at, error: error.clone() });
        }
        inner.finding = (condition, since, why);
    }

    /// A partition is as this says.
    pub fn put(&self, partition: &str, epoch: u64, progress: &Progress, why: Option<String>) {
        let mut inner = self.inner.lock();
        let part = inner.partitions.entry(partition.to_owned()).or_default();
        (part.epoch, part.progress, part.why) = (epoch, progress.clone(), why);
    }

    /// How far behind a partition is.
    pub fn lags(&self, partition: &str, lag: Lag) {
        if let Some(part) = self.inner.lock().partitions.get_mut(partition) {
            part.lag = lag;
        }
    }

    /// How far a partition was read, for whoever asks how far behind that is.
    pub fn position(&self, partition: &str) -> Option<String> {
        self.inner.lock().partitions.get(partition)?.progress.position.clone()
    }

    /// So many messages came.
    pub fn came(&self, messages: usize, now: Duration) {
        let mut inner = self.inner.lock();
        let second = now.as_secs();
        match inner.lately.back_mut().filter(|(last, _)| *last == second) {
            Some((_, count)) => *count += messages as u64,
            None => inner.lately.push_back((second, messages as u64)),
        }
        inner.forget(now);
    }

    /// How it is.
    pub fn now(&self, monotonic: Duration) -> Now {
        let mut inner = self.inner.lock();
        inner.forget(monotonic);
        let (mut condition, mut since, mut reason) = inner.finding.clone();
        for part in inner.partitions.values().filter(|part| !part.progress.ended) {
            // What is found and is read is what counts; of several the one that fares worst.
            if part.progress.condition > condition {
                (condition, since, reason) = (part.progress.condition, part.progress.since, part.why.clone());
            } else if part.progress.condition == condition && reason.is_none() {
                (since, reason) = (part.progress.since.or(since), part.why.clone());
            }
        }
        let messages: u64 = inner.lately.iter().map(|(_, count)| count).sum();
        let rate = messages as f64 / WINDOW.as_secs_f64();
        let (partitions, not_found) = (inner.partitions.clone(), inner.not_found.clone());
        Now { condition, since, reason, partitions, not_found, rate }
    }
}

impl Inner {
    fn forget(&mut self, now: Duration) {
        let oldest = now.as_secs().saturating_sub(WINDOW.as_secs());
        while self.lately.front().is_some_and(|(second, _)| *second <= oldest && oldest > 0) {
            self.lately.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_fares_as_its_worst_partition() {
        let (board, at) = (Board::default(), Timestamp::from_millis(1));
        let state = |board: &Board| board.now(Duration::ZERO).condition;
        assert_eq!(state(&board), Condition::Preparing);
        board.finding(Condition::Active, at, None);
        assert_eq!(state(&board), Condition::Active);
        let mut progress = Progress::default();
        progress.turns(Condition::Active, at, None);
        board.put("a", 1, &progress, None);
        progress.turns(Condition::Failing, at, Some("gone"));
        board.put("b", 1, &progress, Some("gone".into()));
        assert_eq!(state(&board), Condition::Failing);
        assert_eq!(board.now(Duration::ZERO).reason.as_deref(), Some("gone"));
        progress.ended = true;
        board.put("b", 1, &progress, None);
        assert_eq!(state(&board), Condition::Active, "one that is over does not count");
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let board = Board::default();
        board.came(50, Duration::from_secs(100));
        board.came(50, Duration::from_secs(105));
        assert!((board.now(Duration::from_secs(106)).rate - 10.0).abs() < 0.01);
        assert!((board.now(Duration::from_secs(112)).rate - 5.0).abs() < 0.01);
        assert!(board.now(Duration::from_secs(200)).rate.abs() < 0.01);
    }
}
