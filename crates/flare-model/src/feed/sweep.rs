//! Sweeps and replays: documents that are owed because someone asked, not because they changed.
//!
//! A sweep turns documents into standings that are due at once. They are sent only after the record that
//! carries them is durable, like every other retry, so a crash in the middle needs no rule of its own.

use super::rule::Rule;
use super::{Action, Feed, Interest, Standing, State, Sweep, SweepKind, decide};
use crate::document::Row;
use crate::ids::{Ordinal, Seq};
use crate::time::Timestamp;

/// What became of a row that a sweep met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// It is owed now.
    Taken,
    /// It is none of the sweep's.
    Passed,
    /// It is in flight, or the reader has yet to decide on it: come back to the same row later.
    Blocked,
}

impl Feed {
    /// Begins a sweep over all that is settled or under way; what lies beyond is going to be sent anyway. False
    /// while another one is under way.
    pub fn start_sweep(&mut self, kind: SweepKind, replay: u64) -> bool {
        if self.sweep.is_some() {
            return false;
        }
        // After a crash, and behind a retry that outran it, the reader is not the measure.
        let settled =
            self.judge.as_ref().map(|judge| judge.ahead.horizon).max(self.few.extras.last().copied());
        let under_way = self.open.values().map(|open| open.seq).max();
        let beyond = settled.max(under_way).filter(|_| self.rules.keeps(Rule::SweepAhead));
        let end = self.read.max(beyond.unwrap_or_default());
        self.sweep = Some(Box::new(Sweep { replay, kind, position: Seq(0), end, met: 0 }));
        self.delta.dirty = true;
        true
    }

    /// The sweep meets the next row beyond its position, in order of `seq`. It does not end with its last row, but with
    /// [`Feed::sweep_to`]: whoever says that a page is through must not say it of the sweep that comes next.
    pub fn sweep(
        &mut self,
        row: &Row,
        updated_at: Timestamp,
        now: Timestamp,
        interest: &mut impl Interest,
    ) -> Filled {
        let Some(sweep) = &self.sweep else { return Filled::Passed };
        if row.seq > sweep.end {
            return Filled::Passed;
        }
        if !self.may_be_asked_for(row) {
            return Filled::Blocked;
        }
        // Whether more is owed is known soon, and then it is decided under the new filter or it is not.
        let passed = |standing: &Standing| standing.state == State::Passed && standing.seq == row.seq;
        let unclear = self.waiting.get(&row.ordinal).is_some_and(passed);
        if sweep.kind == SweepKind::Filter && unclear && self.rules.keeps(Rule::FilterWaits) {
            return Filled::Blocked;
        }
        let held = self.held.contains(row.ordinal.0);
        let doubt = self.few.doubt.contains(row.ordinal.0);
        let waits = self.waiting.contains_key(&row.ordinal);
        let dead = self.few.dead.contains(row.ordinal.0);
        // Where nobody can tell, the client is left as it is.
        let wanted = match sweep.kind {
            SweepKind::Beginning => {
                !row.deleted && !held && !waits && !dead && self.wants(row, interest) == Some(true)
            }
            SweepKind::Replay { since } => {
                let action = |wants| decide(wants, held, doubt);
                updated_at >= since && self.wants(row, interest).and_then(action).is_some()
            }
            // What waits is decided under the new filter anyway. A dead letter stays one, whichever filter it was
            // given up under; unless there is nothing to send any more, then it goes.
            SweepKind::Filter if waits => false,
            SweepKind::Filter => match self.wants(row, interest) {
                Some(true) => !dead && decide(true, held, doubt) == Some(Action::Create),
                Some(false) => dead != decide(false, held, doubt).is_some(),
                None => false,
            },
        };
        let replay = sweep.replay;
        let counted =
            matches!(sweep.kind, SweepKind::Replay { since } if updated_at >= since && !row.deleted);
        if let Some(sweep) = &mut self.sweep {
            sweep.met += u64::from(counted);
            sweep.position = sweep.position.max(row.seq);
        }
        self.delta.dirty = true;
        if wanted && self.request(row, replay, now) { Filled::Taken } else { Filled::Passed }
    }

    /// Every row up to `seq` has been met by the sweep. Returns whether it is through; the one that a changed filter
    /// needs may have begun then.
    pub fn sweep_to(&mut self, seq: Seq) -> bool {
        let Some(sweep) = &mut self.sweep else { return true };
        sweep.position = sweep.position.max(seq).min(sweep.end);
        self.delta.dirty = true;
        if sweep.position < sweep.end {
            return false;
        }
        self.sweep = None;
        self.sift();
        true
    }

    /// Owes the client this document again, whatever it has. False when it is in flight right now, or lies
    /// beyond the reader and is going to be sent anyway.
    pub fn request(&mut self, row: &Row, replay: u64, now: Timestamp) -> bool {
        if !self.may_be_asked_for(row) {
            return false;
        }
        // Where every revision is sent, the newest one is owed together with those before it.
        if self.since.is_some() && self.owed_from(row.ordinal).is_some_and(|from| from < row.seq) {
            return self.request_with_those_before(row.ordinal, replay, now);
        }
        self.judged(row);
        let standing = Standing {
            ordinal: row.ordinal,
            seq: row.seq,
            doubt: self.few.doubt.contains(row.ordinal.0),
            state: State::Waiting { due: now },
            replay,
            trouble: None,
        };
        self.few.take_dead(row.ordinal.0);
        self.waiting.insert(row.ordinal, standing);
        self.delta.standings.insert(row.ordinal);
        self.wait_for_record(row.ordinal);
        true
    }

    /// Not while it is in flight, nor when the reader has yet to decide on it.
    fn may_be_asked_for(&self, row: &Row) -> bool {
        let busy = self.open.contains_key(&row.ordinal) || self.few.again.contains_key(&row.ordinal);
        let settled = self.few.extras.contains(&row.seq) || self.was_ahead(row.seq);
        (row.seq <= self.read || settled) && !(busy && self.rules.keeps(Rule::SweepWaits))
    }

    /// A document that is owed is not in the log any more, of which the newest change was `head` when it was looked for:
    /// its tombstone was removed. Nothing can be told of it ever again, so nothing is owed, and nothing is known to be
    /// with the client: what is with it was known, or the tombstone would have stayed. False while the log may just not
    /// have been seen as far as the change that is owed, and when nothing is.
    pub fn gone(&mut self, ordinal: Ordinal, head: Seq) -> bool {
        let owed = self.waiting.get(&ordinal).map(|standing| standing.seq);
        let owed = owed.max(self.few.again.get(&ordinal).copied());
        if owed.is_none_or(|seq| seq > head) || self.open.contains_key(&ordinal) {
            return false;
        }
        if let Some(hole) = self.few.take_again(&ordinal) {
            self.holes.remove(&hole);
        }
        self.few.take_unjudged(ordinal.0);
        self.few.take_more(&ordinal);
        self.clear_standing(ordinal);
        self.set_held(ordinal, false);
        self.delta.dirty = true;
        true
    }

    /// Drops a dead letter. What the client has, and any doubt about it, stays as it is.
    pub fn drop_dead(&mut self, ordinal: Ordinal, seq: Seq) -> bool {
        if !self.few.take_dead(ordinal.0) {
            return false;
        }
        self.delta.dead.remove(&ordinal);
        if self.few.doubt.contains(ordinal.0) {
            self.delta.doubtful.insert(ordinal, seq);
        }
        self.delta.standings.insert(ordinal);
        self.delta.dirty = true;
        true
    }
}
