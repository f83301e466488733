//! The leases of a subscription on their thread: when each ends, by the monotonic clock, and those that have ended and
//! wait for their record.

use std::collections::BTreeMap;
use std::time::Duration;

use flare_model::feed::Feed;
use flare_model::ids::Ordinal;
use tokio::sync::oneshot;

/// What is known of leases beyond the feeds. A subscription without any has none of this.
pub struct Leases {
    /// Those that are out. Bound: the documents that wait, see `waiting-limit`.
    out: BTreeMap<(u8, Ordinal), Lease>,
    /// Ended, and not recorded yet: after that to be tried again, decided again, or neither. Bound: see above.
    ended: Vec<(u8, Ordinal)>,
    /// The earliest alarm that is set, monotonic.
    alarm: Duration,
    /// Who waits for records. Bound: requests being answered.
    pending: Vec<Pending>,
}

struct Lease {
    /// When it ends, monotonic.
    end: Duration,
    /// Whether somebody may have it: it is handed over once it is durable, and not before.
    given: bool,
    /// Which one of those that its thread has given.
    number: u64,
}

/// A lease that is watched from now on.
pub struct Watched {
    /// When it ends, monotonic.
    pub end: Duration,
    /// Whether somebody may have it.
    pub given: bool,
    /// Which one of those that its thread has given.
    pub number: u64,
}

/// Someone who wants to know when all that is said of some documents is durable.
struct Pending {
    documents: Vec<(u8, Ordinal)>,
    durable: oneshot::Sender<()>,
}

impl Default for Leases {
    fn default() -> Self {
        Leases { out: BTreeMap::new(), ended: Vec::new(), alarm: Duration::MAX, pending: Vec::new() }
    }
}

impl Leases {
    /// How many are out.
    pub fn out(&self) -> usize {
        self.out.len()
    }

    /// Lanes are served elsewhere from now on; whoever serves them next ends their leases. Whether nothing is left.
    pub fn let_go(&mut self, lanes: &[u8]) -> bool {
        self.out.retain(|(lane, _), _| !lanes.contains(lane));
        self.ended.retain(|(lane, _)| !lanes.contains(lane));
        for waits in &mut self.pending {
            // It was recorded before it went.
            waits.documents.retain(|(lane, _)| !lanes.contains(lane));
        }
        for waits in self.pending.extract_if(.., |waits| waits.documents.is_empty()) {
            let _ = waits.durable.send(());
        }
        self.is_empty()
    }

    /// Lanes are served elsewhere from now on, and what waits to be durable may never be: whoever waits for it hears nothing.
    pub fn cut(&mut self, lanes: &[u8]) {
        let concerns = |waits: &mut Pending| waits.documents.iter().any(|(lane, _)| lanes.contains(lane));
        self.pending.extract_if(.., concerns).for_each(drop);
    }

    /// Whether there is nothing left to know.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty() && self.ended.is_empty() && self.pending.is_empty()
    }

    /// A lease is out. Answers whether an alarm is to be set for it.
    pub fn watch(&mut self, document: (u8, Ordinal), watched: Watched) -> bool {
        let Watched { end, given, number } = watched;
        self.out.insert(document, Lease { end, given, number });
        let first = end < self.alarm;
        if first {
            self.alarm = end;
        }
        first
    }

    /// A lease that is out ends no earlier than then.
    pub fn extend(&mut self, document: (u8, Ordinal), end: Duration) {
        if let Some(lease) = self.out.get_mut(&document) {
            lease.end = lease.end.max(end);
        }
    }

    /// A lease is handed over now. False: it is not out any more, whatever else of its document is.
    pub fn give(&mut self, document: (u8, Ordinal), number: u64) -> bool {
        let lease = self.out.get_mut(&document).filter(|lease| lease.number == number);
        lease.map(|lease| lease.given = true).is_some()
    }

    /// Whether somebody may have what is leased.
    pub fn is_given(&self, document: (u8, Ordinal)) -> bool {
        self.out.get(&document).is_none_or(|lease| lease.given)
    }

    /// An alarm rang: those that are over. A later alarm, of a time when more were out, has nothing to do.
    pub fn rang(&mut self, now: Duration) -> Vec<(u8, Ordinal)> {
        if self.alarm <= now {
            self.alarm = Duration::MAX;
        }
        let over = self.out.iter().filter(|(_, lease)| lease.end <= now);
        over.map(|(document, _)| *document).collect()
    }

    /// When the next alarm is to be set, if none is. Those of lanes that are about to leave are over, and stay so.
    pub fn next_alarm(&mut self, now: Duration) -> Option<Duration> {
        let next = self.out.values().map(|lease| lease.end).filter(|end| *end > now).min();
        let next = next.filter(|next| *next < self.alarm)?;
        self.alarm = next;
        Some(next)
    }

    /// Those that are out.
    pub fn documents_out(&self) -> Vec<(u8, Ordinal)> {
        self.out.keys().copied().collect()
    }

    /// Those that have ended, and whose end is not recorded yet.
    pub fn documents_ended(&self) -> &[(u8, Ordinal)] {
        &self.ended
    }

    /// One has ended in its feed. Even if nothing is owed it waits for its record: the reader may meet a newer change
    /// before that is durable.
    pub fn ended(&mut self, document: (u8, Ordinal)) {
        self.out.remove(&document);
        self.ended.push(document);
    }

    /// Someone wants to know when all that is said of some documents is durable.
    pub fn tell_when_durable(&mut self, documents: Vec<(u8, Ordinal)>, durable: oneshot::Sender<()>) {
        self.pending.push(Pending { documents, durable });
    }

    /// A lane's record is durable: whoever waited for it is told.
    pub fn recorded(&mut self, lane: u8, feed: &Feed) -> Recorded {
        let later = |document: &(u8, Ordinal)| document.0 != lane || feed.is_unrecorded(document.1);
        let (later, go_on) = self.ended.drain(..).partition(later);
        self.ended = later;
        let mut lacking = false;
        for mut waits in std::mem::take(&mut self.pending) {
            waits.documents.retain(|(other, ordinal)| *other != lane || feed.is_pending(*ordinal));
            lacking |= waits.documents.iter().any(|(other, _)| *other == lane);
            if waits.documents.is_empty() {
                let _ = waits.durable.send(());
            } else {
                self.pending.push(waits);
            }
        }
        Recorded { go_on, lacking }
    }
}

/// What follows from a record for the leases of its lane.
pub struct Recorded {
    /// Documents whose leases it ended: they are due, or wait as long as was asked.
    pub go_on: Vec<(u8, Ordinal)>,
    /// Something was said while that record was under way, and waits for the next one.
    pub lacking: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_was_taken_back_is_not_handed_over_in_place_of_the_next_one() {
        let (mut leases, document) = (Leases::default(), (0, Ordinal(7)));
        let watched = |number| Watched { end: Duration::from_secs(1), given: false, number };
        leases.watch(document, watched(1));
        leases.ended(document);
        leases.watch(document, watched(2));
        assert!(!leases.give(document, 1), "nobody has that one any more");
        assert!(!leases.is_given(document));
        assert!(leases.give(document, 2) && leases.is_given(document));
    }
}
