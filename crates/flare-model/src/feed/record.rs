//! What a feed writes to the ledger and gets back after a restart.

use std::sync::Arc;

use roaring::RoaringTreemap;

#[cfg(doc)]
use super::Left;
use super::open::LeftToJudge;
use super::pending::UnderWay;
use super::rule::Rule;
use super::{Feed, Filtering, Kept, Note, Standing, State};
use crate::ids::{Ordinal, Seq};
use crate::time::Timestamp;

/// The settled changes beyond the cursor: all up to `horizon` but the holes, and the extras beyond it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ahead {
    /// Up to here everything is settled, but for the holes. At or below the cursor: nothing is ahead.
    pub horizon: Seq,
    /// Open changes below the horizon, in order.
    pub holes: Vec<Seq>,
    /// Settled changes beyond the horizon, in order.
    pub extras: Vec<Seq>,
}

impl Ahead {
    /// Whether the change at `seq`, which lies beyond the cursor, is settled.
    pub fn contains(&self, seq: Seq) -> bool {
        if seq <= self.horizon {
            self.holes.binary_search(&seq).is_err()
        } else {
            self.extras.binary_search(&seq).is_ok()
        }
    }
}

/// A scan of older documents beside the live cursor. It hands each page of documents over as standings that
/// are due at once, in the commit that moves its position: so it has nothing in flight of its own, and a
/// crash finds either the position before the page or the page's standings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sweep {
    /// The replay it serves; 0 for the beginning, [`TRANSITION`](super::TRANSITION) for a changed filter.
    pub replay: u64,
    /// What it takes.
    pub kind: SweepKind,
    /// Every document up to here has been handed over or passed by.
    pub position: Seq,
    /// Where it ends; documents that changed beyond it belong to the live cursor.
    pub end: Seq,
    /// How many documents it has handed over.
    pub met: u64,
}

/// What a sweep takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SweepKind {
    /// Every live document that the client does not have: a subscription that starts at the beginning.
    Beginning,
    /// Every document accepted since a time, whether the client has it or not.
    Replay {
        /// The earliest `updatedAt` taken.
        since: Timestamp,
    },
    /// Every document that a changed filter makes the client's, or no longer the client's.
    Filter,
}

/// Counters that survive a restart. They are for reading, not for deciding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// Attempts that ended in success.
    pub delivered: u64,
    /// Notifications the client asked to drop.
    pub discarded: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Revisions that a client which wants all of them will not get: given up, or removed from the history.
    pub skipped: u64,
    /// When the last success was recorded.
    pub last_success_at: Option<Timestamp>,
    /// The last failure.
    pub last_failure: Option<Box<Failure>>,
    /// When things turned for the client; absent where they never did.
    pub health: Option<Box<Health>>,
}

impl Tally {
    /// Nothing was counted.
    pub const NOTHING: Tally = Tally {
        delivered: 0,
        discarded: 0,
        failed: 0,
        skipped: 0,
        last_success_at: None,
        last_failure: None,
        health: None,
    };
}

/// When things turned for a client, as one lane knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Health {
    /// The first failure after the client last took something or asked to drop it, of all lanes of this one's thread. What
    /// other lanes have recorded may be newer: see [`Fares`](crate::health::Fares).
    pub failing_since: Option<Timestamp>,
    /// When the client last asked to drop something.
    pub last_discard_at: Option<Timestamp>,
    /// When it last was well again, after it had been shown as failing.
    pub recovered_at: Option<Timestamp>,
    /// When everything that was there before the subscription had been gone through.
    pub prepared_at: Option<Timestamp>,
}

/// One failed attempt, as the status shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// When it ended.
    pub at: Timestamp,
    /// The answer's status, if there was one.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: String,
}

/// Everything that has to become durable together. Absolute values and idempotent sets: writing a record
/// twice is the same as writing it once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The cursor.
    pub cursor: Seq,
    /// The mark that must be durable before anything beyond it is sent. 0 after a clean stop and during a pause:
    /// nothing at all may be on its way.
    pub issued: Seq,
    /// After a crash, until all is judged: the mark to judge by, as it was found then; otherwise 0. A clean stop leaves
    /// it: what a life before this one may have sent is as unknown as ever.
    pub judging: Seq,
    /// Where nothing may be on its way (`issued` is 0): the documents that waited when a crash was found, and are not
    /// judged yet. Whole.
    pub unjudged: RoaringTreemap,
    /// Where nothing may be on its way, and there is a mark to judge by: the documents that were judged by it, and are
    /// not judged again. Whole.
    pub judged: RoaringTreemap,
    /// The settled changes beyond the cursor.
    pub ahead: Ahead,
    /// Documents the client now has.
    pub held: Vec<Ordinal>,
    /// Documents the client no longer has.
    pub dropped: Vec<Ordinal>,
    /// Standings to write, one at most for each document.
    pub standings: Vec<Standing>,
    /// Documents whose standing goes.
    pub cleared: Vec<Ordinal>,
    /// Which revisions the feed sends, see [`Feed::since`]; a mark that no change can reach after a change to the newest
    /// only.
    pub since: Option<Seq>,
    /// The sweep, whole.
    pub sweep: Option<Sweep>,
    /// The counters, whole.
    pub tally: Tally,
    /// The life whose kept states are believed; those of this record are of it.
    pub life: u64,
    /// Documents as the client has them now, where that is kept.
    pub kept: Vec<(Ordinal, Arc<Kept>)>,
    /// Documents whose kept state goes.
    pub forgotten: Vec<Ordinal>,
    /// What is kept for filters, whole; absent where there never was one.
    pub filtering: Option<Box<Filtering>>,
    /// Notes to write, one at most for each document.
    pub notes: Vec<Note>,
    /// Documents whose note goes.
    pub unnoted: Vec<Ordinal>,
}

/// What the ledger knows of a feed: where a new life of it begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Saved {
    /// As last recorded.
    pub cursor: Seq,
    /// As last recorded.
    pub issued: Seq,
    /// As last recorded.
    pub judging: Seq,
    /// As last recorded.
    pub unjudged: RoaringTreemap,
    /// As last recorded.
    pub judged: RoaringTreemap,
    /// As last recorded.
    pub ahead: Ahead,
    /// All that the client has.
    pub held: RoaringTreemap,
    /// Every standing that is waiting, passed or doubtful, whole.
    pub standings: Vec<Standing>,
    /// The dead letters: ordinals only, they may be many.
    pub dead: RoaringTreemap,
    /// Those of the dead letters that are in doubt.
    pub dead_in_doubt: RoaringTreemap,
    /// Which revisions the feed sends, see [`Feed::since`].
    pub since: Option<Seq>,
    /// As last recorded.
    pub sweep: Option<Sweep>,
    /// As last recorded.
    pub tally: Tally,
    /// As last recorded.
    pub life: u64,
    /// As last recorded.
    pub filtering: Option<Box<Filtering>>,
    /// Documents of which there is a note: ordinals only, they may be many.
    pub noted: RoaringTreemap,
    /// Those of them whose note does not [lag](Left::lags).
    pub untold: RoaringTreemap,
    /// The log was not the one this feed's numbers belong to (a restore, a lost tail): nothing of it can be
    /// believed but that the client may have anything. It stays so until the first record after that is
    /// durable, however often the feed is opened meanwhile and however far the log has grown.
    pub strange: bool,
}

/// A record that was taken: it goes to the ledger, and the receipt comes [back](Feed::recorded) once it is durable.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct Taken {
    /// What has to become durable, as one.
    pub record: Record,
    /// What is handed back then.
    pub receipt: Receipt,
}

/// Says that a record was taken. There is no other way to have one, and it is good once: so nothing counts as durable
/// that was not written. If the record will never be durable it is dropped, and the feed with it, since that gives no
/// other record.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
#[must_use = "the feed gives no other record before this one is handed back"]
pub struct Receipt(());

#[cfg(test)]
impl Receipt {
    /// For a record that was never taken: what a careless caller would do, if it could.
    pub(super) fn forged() -> Receipt {
        Receipt(())
    }
}

impl Saved {
    /// Whether the numbers belong to another log than one whose newest change is `head`: nothing of it is believed, and
    /// the feed begins again.
    pub fn is_of_another_log(&self, head: Seq) -> bool {
        let settled = self.ahead.extras.last().copied().max(Some(self.ahead.horizon));
        self.strange || self.cursor > head || settled > Some(head)
    }
}

impl Feed {
    /// Whether there is something to record.
    pub fn is_changed(&self) -> bool {
        self.delta.dirty
    }

    /// Whether all that is known is durable.
    pub fn is_durable(&self) -> bool {
        !self.delta.dirty && self.delta.under_way.is_none()
    }

    /// Takes what changed since the last record, if anything did and that one is durable. The caller makes it durable,
    /// in one commit, and then hands its receipt [back](Feed::recorded).
    ///
    /// After a crash the recorded cursor rests where it was found until nothing is left to judge by it.
    pub fn take_record(&mut self) -> Option<Taken> {
        if !self.delta.dirty || self.delta.under_way.is_some() {
            return None;
        }
        self.end_judging();
        self.delta.dirty = false;
        let issued = self.delta.issue.max(self.issued);
        let LeftToJudge { judging, unjudged, judged } = self.left_to_judge(issued);
        let mut record = Record { issued, judging, unjudged, judged, ..Record::default() };
        for (ordinal, has) in self.delta.held.drain() {
            if has { record.held.push(ordinal) } else { record.dropped.push(ordinal) }
        }
        let mut dead = std::mem::take(&mut self.delta.dead);
        let doubtful = std::mem::take(&mut self.delta.doubtful);
        for ordinal in std::mem::take(&mut self.delta.standings) {
            if let Some(standing) = self.few.waiting.get(&ordinal) {
                let doubt = self.in_doubt_if_it_ends_here(ordinal);
                record.standings.push(Standing { doubt, ..standing.clone() });
            } else if let Some(standing) = dead.remove(&ordinal) {
                record.standings.push(standing);
            } else if let Some(&seq) = doubtful.get(&ordinal) {
                let state = State::Doubtful;
                record.standings.push(Standing {
                    ordinal,
                    seq,
                    doubt: true,
                    state,
                    replay: 0,
                    trouble: None,
                });
            } else {
                record.cleared.push(ordinal);
            }
        }
        for (ordinal, note) in std::mem::take(&mut self.delta.notes) {
            match note {
                Some(note) => record.notes.push(note),
                None => record.unnoted.push(ordinal),
            }
        }
        (record.cursor, record.ahead) = self.recorded_position();
        record.since = self.few.since;
        record.sweep = self.few.sweep.as_deref().cloned();
        record.tally = Tally::clone(&self.tally);
        record.filtering = self.filtering.clone();
        self.record_states(&mut record);
        let gone = record.dropped.iter().chain(&record.cleared).chain(&record.unnoted).copied().collect();
        self.delta.under_way = Some(UnderWay { issued, documents: self.few.unrecorded.clone(), gone });
        Some(Taken { record, receipt: Receipt(()) })
    }

    /// The record that was taken is durable. It raises the mark or leaves it; what lowers it is
    /// [`Feed::close`] and [`Feed::pause`], and nothing else.
    pub fn recorded(&mut self, _: Receipt) {
        let UnderWay { issued, documents, gone: _ } = self.delta.under_way.take().unwrap_or_default();
        let in_force = if self.rules.keeps(Rule::MarkGrows) { self.issued } else { Seq(0) };
        self.issued = in_force.max(issued);
        self.recorded_states();
        for ordinal in documents {
            self.few.take_unrecorded(&ordinal);
        }
        self.few.tidy();
        self.delta.settle();
        self.end_turns();
    }

    /// The bug that receipts keep from happening: a lane with nothing to record is told that its record is durable.
    #[cfg(feature = "planted")]
    pub fn recorded_though_nothing_was_taken(&mut self) {
        self.recorded(Receipt(()));
    }

    /// The documents of which a tombstone must stay, beside all beyond the cursor: those that the client has or may
    /// have, that are owed or given up, and those of which the ledger says so until a record is durable. Otherwise a
    /// crash before that would have the client take for ever to have what nobody can tell it about any more.
    pub fn needed(&self) -> RoaringTreemap {
        let mut needed = &self.held | &self.few.doubt;
        needed |= &self.few.dead;
        needed.extend(self.few.waiting.keys().map(|ordinal| ordinal.0));
        if self.rules.keeps(Rule::NeededUntilDurable) {
            let gone = self.delta.under_way.iter().flat_map(|under_way| &under_way.gone);
            let changed = self.delta.held.keys().chain(&self.delta.standings).chain(self.delta.notes.keys());
            needed.extend(changed.chain(gone).map(|ordinal| ordinal.0));
        }
        needed
    }

    /// An attempt that was pushed out of the window is still open, and what stands for it may stand for a newer
    /// change: then nothing else in the ledger tells that, say, a delete was under way below it.
    fn in_doubt_if_it_ends_here(&self, ordinal: Ordinal) -> bool {
        // The next life finds a lease open, and knows.
        let alone = |open: &super::Open| open.action.leaves_doubt() && !open.leased;
        let under_way = self.delta.open.get(&ordinal).is_some_and(alone);
        self.few.doubt.contains(ordinal.0) || under_way && self.rules.keeps(Rule::DisplacedDoubt)
    }

    /// The cursor that the next record has, and what is ahead of it: a crash after it goes back no further.
    pub fn recorded_position(&self) -> (Seq, Ahead) {
        let judge = self.few.judge.as_ref().filter(|_| self.rules.keeps(Rule::CursorRests));
        let cursor = judge.map_or(self.cursor(), |judge| judge.cursor);
        let prior =
            self.few.judge.as_ref().map(|judge| &judge.ahead).filter(|prior| prior.horizon > self.read);
        let horizon = prior.map_or(self.read, |prior| prior.horizon);
        let mut holes: Vec<Seq> = self.delta.holes.keys().copied().filter(|seq| *seq <= horizon).collect();
        if let Some(prior) = prior {
            let left = |seq: &&Seq| **seq > self.read && !self.few.extras.contains(seq);
            holes.extend(prior.holes.iter().filter(left));
            holes.sort_unstable();
            holes.dedup();
        }
        let extras = self.few.extras.iter().copied().filter(|seq| *seq > horizon).collect();
        (cursor, Ahead { horizon, holes, extras })
    }
}
