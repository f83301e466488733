//! What is durable of a partition that is being read: how far, what was counted, and how often messages that could not be read
//! were tried. Events come in; what follows for a message goes out. No I/O, no clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::document::Outcome;
use crate::ids::url_hash;
use crate::time::Timestamp;

/// So many unreadable messages are remembered between two tries. When full: the next one is given up at once, and is among the
/// dead letters all the same.
const REMEMBERED: usize = 1024;

/// How long an unreadable message waits for its next try, at first and at most.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What was counted of a partition, since it was first read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Counted {
    /// Messages that were given out, those that came again included.
    pub received: u64,
    /// Those that changed a document.
    pub accepted: u64,
    /// Those with a revision that was known.
    pub unchanged: u64,
    /// Those with an older one.
    pub stale: u64,
    /// Those that could not be read, each try counted.
    pub rejected: u64,
    /// Those that the source need not give out again.
    pub acknowledged: u64,
}

impl Counted {
    /// A message was stored.
    pub fn stored(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Created | Outcome::Updated | Outcome::Deleted => self.accepted += 1,
            Outcome::Unchanged | Outcome::Absent => self.unchanged += 1,
            Outcome::Stale => self.stale += 1,
        }
    }

    /// What came since it was this.
    #[must_use]
    pub fn since(self, before: Counted) -> Counted {
        Counted {
            received: self.received.saturating_sub(before.received),
            accepted: self.accepted.saturating_sub(before.accepted),
            unchanged: self.unchanged.saturating_sub(before.unchanged),
            stale: self.stale.saturating_sub(before.stale),
            rejected: self.rejected.saturating_sub(before.rejected),
            acknowledged: self.acknowledged.saturating_sub(before.acknowledged),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Counted) -> Counted {
        Counted {
            received: self.received + other.received,
            accepted: self.accepted + other.accepted,
            unchanged: self.unchanged + other.unchanged,
            stale: self.stale + other.stale,
            rejected: self.rejected + other.rejected,
            acknowledged: self.acknowledged + other.acknowledged,
        }
    }
}

/// How a consumer, or a part of it, fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Condition {
    /// It reads.
    Active,
    /// It has not come to read yet.
    #[default]
    Preparing,
    /// The source does not answer; it is tried again.
    Failing,
    /// There is nothing to read from, or nobody may; it is looked again seldom.
    Disabled,
}

impl Condition {
    /// As users read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Condition::Active => "active",
            Condition::Preparing => "preparing",
            Condition::Failing => "failing",
            Condition::Disabled => "disabled",
        }
    }
}

/// What went wrong last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// When.
    pub at: Timestamp,
    /// What.
    pub error: String,
}

/// What is durable of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// Which queue or stream the rest is about. One without it is about the one that its consumer reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// After which message reading goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<String>,
    /// The partition is over.
    pub ended: bool,
    /// The highest number that a message was given by its order of arrival.
    pub arrived: i64,
    /// What was counted.
    pub counted: Counted,
    /// When the last message came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message_at: Option<Timestamp>,
    /// How it fared when this was written.
    pub condition: Condition,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// What went wrong last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<Failed>,
    /// How often unreadable messages were tried, by a hash of what they say. Bound: [`REMEMBERED`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tries: BTreeMap<String, u32>,
    /// What was given up, by the same hash, where the source says the same again and again. Bound: [`REMEMBERED`]. When full: others of the
    /// kind are neither tried nor kept, for they are said again.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    given_up: VecDeque<String>,
}

/// What follows for a message that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is to come again after a while.
    Again(Duration),
    /// It was tried so often, and is given up.
    GiveUp(u32),
}

impl Progress {
    /// It is about this queue or stream from now on: what another one was read up to, and that it is over, says nothing of this one.
    pub fn reads(&mut self, place: &str) {
        if self.place.as_deref().is_some_and(|before| before != place) {
            (self.position, self.ended) = (None, false);
        }
        self.place = Some(place.to_owned());
    }

    /// The number of a message by its order of arrival: it grows, also over the lives of the process and where the clock was set
    /// back, because the highest one is durable.
    pub fn arrive(&mut self, now: Timestamp) -> i64 {
        self.arrived = (self.arrived + 1).max(now.millis().saturating_mul(1000));
        self.arrived
    }

    /// A message could not be read. `given_out` is how often it came, where its source counts that; `comes_again` whether the
    /// source would give it out again.
    pub fn unread(&mut self, payload: &[u8], given_out: Option<u32>, comes_again: bool, most: u32) -> Unread {
        self.counted.rejected += 1;
        let key = key(payload);
        let tried = self.tries.get(&key).map_or(0, |tried| *tried).saturating_add(1);
        let tried = given_out.map_or(tried, |given_out| given_out.max(tried));
        if !comes_again || tried >= most || (self.tries.len() >= REMEMBERED && tried == 1) {
            self.tries.remove(&key);
            return Unread::GiveUp(tried);
        }
        self.tries.insert(key, tried);
        Unread::Again((FIRST_WAIT * (1 << (tried - 1).min(16))).min(LONGEST_WAIT))
    }

    /// A message could be read: whatever was remembered of its like is forgotten.
    pub fn read(&mut self, payload: &[u8]) {
        if !self.tries.is_empty() {
            self.tries.remove(&key(payload));
        }
    }

    /// A message is a dead letter, and is not to be one again when its source says it again.
    pub fn gave_up(&mut self, payload: &[u8]) {
        if self.given_up.len() >= REMEMBERED {
            self.given_up.pop_front();
        }
        self.given_up.push_back(key(payload));
    }

    /// Of a source that says the same again and again: whether one more that cannot be read may be tried, beside so many others of this
    /// time. Otherwise a source that says enough of them would fill the store with dead letters.
    pub fn may_try(&self, others: usize) -> bool {
        self.given_up.len() + others < REMEMBERED
    }

    /// Of such a source: what it does not say any more need not be remembered. `said` is what it says that cannot be read.
    pub fn forget_unsaid<'m>(&mut self, said: impl Iterator<Item = &'m [u8]>) {
        if self.tries.is_empty() && self.given_up.is_empty() {
            return;
        }
        let said: BTreeSet<String> = said.map(key).collect();
        self.tries.retain(|key, _| said.contains(key));
        self.given_up.retain(|key| said.contains(key));
    }

    /// Whether a message was given up before.
    pub fn is_given_up(&self, payload: &[u8]) -> bool {
        !self.given_up.is_empty() && self.given_up.contains(&key(payload))
    }

    /// How it fares from now on; answers whether that is another word.
    pub fn turns(&mut self, condition: Condition, at: Timestamp, why: Option<&str>) -> bool {
        if let Some(error) = why {
            self.last_failure = Some(Failed { at, error: error.to_owned() });
        }
        let turned = self.condition != condition || self.since.is_none();
        if turned {
            (self.condition, self.since) = (condition, Some(at));
        }
        turned
    }
}

/// A name for what a message says; two that say the same are tried together.
fn key(payload: &[u8]) -> String {
    format!("{:016x}{:x}", url_hash(&String::from_utf8_lossy(payload)), payload.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_message_is_tried_so_often_and_no_more() {
        let mut progress = Progress::default();
        let waits = [500, 1000, 2000, 4000].map(Duration::from_millis);
        for wait in waits {
            assert_eq!(progress.unread(b"x", None, true, 5), Unread::Again(wait));
            let kept = serde_json::to_string(&progress).expect("plain data");
            progress = serde_json::from_str(&kept).expect("plain data");
        }
        assert_eq!(progress.unread(b"x", None, true, 5), Unread::GiveUp(5));
        assert_eq!(progress.unread(b"x", None, true, 5), Unread::Again(waits[0]), "another one begins anew");
        assert_eq!(progress.counted.rejected, 6);
    }

    #[test]
    fn what_a_source_counts_or_never_gives_out_again_needs_no_memory() {
        let mut progress = Progress::default();
        assert_eq!(progress.unread(b"x", Some(5), true, 5), Unread::GiveUp(5));
        assert_eq!(progress.unread(b"x", Some(2), true, 5), Unread::Again(Duration::from_secs(1)));
        assert_eq!(progress.unread(b"y", None, false, 5), Unread::GiveUp(1));
    }

    #[test]
    fn so_many_are_remembered_and_the_rest_is_given_up_at_once() {
        let mut progress = Progress::default();
        for number in 0..REMEMBERED {
            assert_ne!(progress.unread(number.to_string().as_bytes(), None, true, 5), Unread::GiveUp(1));
        }
        assert_eq!(progress.unread(b"one more", None, true, 5), Unread::GiveUp(1));
        progress.read(b"7");
        assert!(matches!(progress.unread(b"one more", None, true, 5), Unread::Again(_)));
    }

    #[test]
    fn what_was_read_of_another_stream_says_nothing_of_this_one() {
        let mut progress = Progress { position: Some("7".into()), ended: true, ..Progress::default() };
        progress.reads("orders");
        progress.reads("orders");
        assert_eq!((progress.position.as_deref(), progress.ended), (Some("7"), true));
        progress.counted.accepted = 5;
        progress.reads("others");
        assert_eq!((progress.position.as_deref(), progress.ended), (None, false));
        assert_eq!(progress.counted.accepted, 5);
    }

    #[test]
    fn what_is_said_again_and_again_is_given_up_once_and_forgotten_when_it_is_not_said_any_more() {
        let mut progress = Progress::default();
        for number in 0..REMEMBERED {
            assert!(progress.may_try(0));
            progress.gave_up(number.to_string().as_bytes());
        }
        assert!(!progress.may_try(0) && progress.is_given_up(b"0"));
        progress.forget_unsaid([b"0".as_slice(), b"new"].into_iter());
        assert!(progress.is_given_up(b"0") && !progress.is_given_up(b"1"));
        assert!(progress.may_try(REMEMBERED - 2) && !progress.may_try(REMEMBERED - 1));
    }

    #[test]
    fn arrivals_are_numbered_upwards_whatever_the_clock_does() {
        let mut progress = Progress::default();
        let first = progress.arrive(Timestamp::from_millis(5000));
        assert_eq!(first, 5_000_000);
        assert_eq!(progress.arrive(Timestamp::from_millis(1)), first + 1);
        assert_eq!(progress.arrive(Timestamp::from_millis(6000)), 6_000_000);
    }
}
