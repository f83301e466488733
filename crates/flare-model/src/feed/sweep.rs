//! Sweeps and replays: documents that are owed because someone asked, not because they changed.
//!
//! A sweep turns documents into standings that are due at once. They are sent only after the record that
//! carries them is durable, like every other retry, so a crash in the middle needs no rule of its own.

use super::rule::Rule;
use super::{Action, Feed, Interest, Left, Note, Standing, State, Sweep, SweepKind, TRANSITION, decide};
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

/// What a feed knows of a document that a sweep meets.
pub(super) struct MetBySweep {
    pub held: bool,
    pub doubt: bool,
    pub waits: bool,
    pub dead: bool,
    /// It was accepted before what a replay goes over.
    pub old: bool,
}

impl MetBySweep {
    /// Whether a sweep takes it. `wants` says whether the client is to have it; where nobody can tell, the client is left
    /// as it is.
    pub fn is_wanted(&self, kind: SweepKind, row: &Row, wants: impl FnOnce() -> Option<bool>) -> bool {
        let MetBySweep { held, doubt, waits, dead, old } = *self;
        match kind {
            SweepKind::Beginning => !row.deleted && !held && !waits && !dead && wants() == Some(true),
            SweepKind::Replay { .. } => {
                !old && wants().and_then(|wants| decide(wants, held, doubt)).is_some()
            }
            // What waits is decided under the new filter anyway. A dead letter stays one, whichever filter it was
            // given up under; unless there is nothing to send any more, then it goes.
            SweepKind::Filter if waits => false,
            SweepKind::Filter => match wants() {
                Some(true) => !dead && decide(true, held, doubt) == Some(Action::Create),
                Some(false) => dead != decide(false, held, doubt).is_some(),
                None => false,
            },
        }
    }
}

/// Whether a replay leaves out what was accepted then.
pub(super) fn is_old(kind: SweepKind, updated_at: Timestamp) -> bool {
    matches!(kind, SweepKind::Replay { since } if updated_at < since)
}

impl Feed {
    /// Begins a sweep over all that is settled or under way; what lies beyond is going to be sent anyway. False
    /// while another one is under way.
    pub fn start_sweep(&mut self, kind: SweepKind, replay: u64) -> bool {
        if self.few.sweep.is_some() {
            return false;
        }
        // After a crash, and behind a retry that outran it, the reader is not the measure.
        let settled =
            self.few.judge.as_ref().map(|judge| judge.ahead.horizon).max(self.few.extras.last().copied());
        let under_way = self.delta.open.values().map(|open| open.seq).max();
        let beyond = settled.max(under_way).filter(|_| self.rules.keeps(Rule::SweepAhead));
        let end = self.read.max(beyond.unwrap_or_default());
        self.few.make().sweep = Some(Box::new(Sweep { replay, kind, position: Seq(0), end, met: 0 }));
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
        let Some(sweep) = &self.few.sweep else { return Filled::Passed };
        if row.seq > sweep.end {
            return Filled::Passed;
        }
        if !self.may_be_asked_for(row) {
            return Filled::Blocked;
        }
        // Whether more is owed is known soon, and then it is decided under the new filter or it is not.
        let passed = |standing: &Standing| standing.state == State::Passed && standing.seq == row.seq;
        let unclear = self.few.waiting.get(&row.ordinal).is_some_and(passed);
        if sweep.kind == SweepKind::Filter && unclear && self.rules.keeps(Rule::FilterWaits) {
            return Filled::Blocked;
        }
        let held = self.held.contains(row.ordinal.0);
        let doubt = self.few.doubt.contains(row.ordinal.0);
        let waits = self.few.waiting.contains_key(&row.ordinal);
        let dead = self.few.dead.contains(row.ordinal.0);
        let met = MetBySweep { held, doubt, waits, dead, old: is_old(sweep.kind, updated_at) };
        let wanted = met.is_wanted(sweep.kind, row, || self.wants(row, interest));
        let replay = sweep.replay;
        if let Some(sweep) = self.few.sweep_mut() {
            sweep.met += u64::from(wanted);
            sweep.position = sweep.position.max(row.seq);
        }
        self.delta.dirty = true;
        if wanted && self.request(row, replay, now) { Filled::Taken } else { Filled::Passed }
    }

    /// Every row up to `seq` has been met by the sweep. Returns whether it is through; the one that a changed filter
    /// needs may have begun then.
    pub fn sweep_to(&mut self, seq: Seq) -> bool {
        let Some(sweep) = self.few.sweep_mut() else { return true };
        sweep.position = sweep.position.max(seq).min(sweep.end);
        self.delta.dirty = true;
        if sweep.position < sweep.end {
            return false;
        }
        if let Some(few) = self.few.any() {
            few.sweep = None;
        }
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
        if self.few.since.is_some() && self.owed_from(row.ordinal).is_some_and(|from| from < row.seq) {
            return self.request_with_those_before(row.ordinal, replay, now);
        }
        self.judged(row);
        self.note_asked(row);
        let standing = Standing {
            ordinal: row.ordinal,
            seq: row.seq,
            doubt: self.few.doubt.contains(row.ordinal.0),
            state: State::Waiting { due: now },
            replay,
            trouble: None,
        };
        self.few.take_dead(row.ordinal.0);
        self.few.make().waiting.insert(row.ordinal, standing);
        self.delta.standings.insert(row.ordinal);
        self.wait_for_record(row.ordinal);
        true
    }

    /// Not while it is in flight, nor when the reader has yet to decide on it.
    fn may_be_asked_for(&self, row: &Row) -> bool {
        let busy = self.delta.open.contains_key(&row.ordinal) || self.few.again.contains_key(&row.ordinal);
        let settled = self.few.extras.contains(&row.seq) || self.was_ahead(row.seq);
        (row.seq <= self.read || settled) && !(busy && self.rules.keeps(Rule::SweepWaits))
    }

    /// A document that is owed is not in the log any more, of which the newest change was `head` when it was looked for:
    /// its tombstone was removed. Nothing can be told of it ever again, so nothing is owed, and nothing is known to be
    /// with the client: what is with it was known, or the tombstone would have stayed. False while the log may just not
    /// have been seen as far as the change that is owed, and when nothing is.
    pub fn gone(&mut self, ordinal: Ordinal, head: Seq) -> bool {
        let owed = self.few.waiting.get(&ordinal).map(|standing| standing.seq);
        let owed = owed.max(self.few.again.get(&ordinal).copied());
        if owed.is_none_or(|seq| seq > head) || self.delta.open.contains_key(&ordinal) {
            return false;
        }
        if let Some(hole) = self.few.take_again(&ordinal) {
            self.fill(&hole);
        }
        self.few.take_unjudged(ordinal.0);
        self.few.take_more(&ordinal);
        self.clear_standing(ordinal);
        self.unnote(ordinal);
        self.set_held(ordinal, false);
        self.delta.dirty = true;
        true
    }

    /// What is asked for again takes the place of what was owed or given up, and with it goes how that went.
    fn note_asked(&mut self, row: &Row) {
        let (ordinal, seq) = (row.ordinal, row.seq);
        let unheard = |standing: &Standing| standing.trouble.as_ref().is_some_and(|trouble| trouble.unheard);
        let says_more = self.few.waiting.get(&ordinal).is_some_and(unheard);
        if self.few.noted.contains(ordinal.0) && !self.few.untold.contains(ordinal.0) && !says_more {
            return;
        }
        let waiting = self.few.waiting.get(&ordinal).filter(|standing| {
            standing.replay == 0 || standing.seq != seq || says_more && self.few.noted.contains(ordinal.0)
        });
        if waiting.is_none() && !self.few.dead.contains(ordinal.0) {
            return;
        }
        let story =
            waiting.filter(|standing| standing.seq == seq).and_then(|standing| standing.trouble.clone());
        self.note(Note { ordinal, seq, left: Left::Asked, story });
    }

    /// Drops the dead letter of a document, as the ledger has it where that is at hand. What the client has, and any doubt
    /// about it, stays as it is.
    pub fn drop_dead(&mut self, ordinal: Ordinal, seq: Seq, letter: Option<Standing>) -> bool {
        if !self.few.take_dead(ordinal.0) {
            return false;
        }
        // The one that the ledger does not have yet is the newer one.
        let letter = self.delta.dead.remove(&ordinal).or(letter);
        let seq = letter.as_ref().map_or(seq, |letter| letter.seq);
        if self.few.doubt.contains(ordinal.0) {
            self.delta.doubtful.insert(ordinal, seq);
        }
        // A replay sends what the client may have: it has that, unless something else is known.
        let replayed = letter.as_ref().is_some_and(|letter| !matches!(letter.replay, 0 | TRANSITION));
        let has = replayed && self.held.contains(ordinal.0) && !self.few.doubt.contains(ordinal.0);
        let unheard =
            letter.as_ref().and_then(|letter| letter.trouble.as_ref()).is_some_and(|story| story.unheard);
        let noted = self.few.noted.contains(ordinal.0) && !self.few.untold.contains(ordinal.0);
        let says_more = if noted { unheard } else { !has };
        if says_more {
            let leaves = letter.as_ref().is_some_and(|letter| letter.replay == TRANSITION);
            let left = if leaves && self.has_settled(ordinal) { Left::LeaveDropped } else { Left::Dropped };
            let story = letter.and_then(|letter| letter.trouble);
            self.note(Note { ordinal, seq, left, story });
        }
        self.delta.standings.insert(ordinal);
        self.delta.dirty = true;
        true
    }
}
