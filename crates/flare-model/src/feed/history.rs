//! Every revision: for a client that wants each accepted revision, rows of the whole history come in, in order, and
//! go out one at a time per document.
//!
//! A feed in this mode has a mark, *since*: of what was replaced up to there it sees nothing, of what was replaced
//! later it sees every revision. A standing of a document means: everything from its change on is owed, as far as
//! the reader has come. So while a document waits, or is in flight, the reader passes its newer revisions by. The
//! next revision goes out once the outcome of the one before is durable: otherwise a crash would forget that
//! outcome, and the older revision would follow the newer one.
//!
//! A client that goes back to the newest only has a mark beyond everything: the feed then sees the newest rows and no
//! others, and all else stays as it is until nothing is open, owed or to be judged.

use super::rule::Rule;
use super::{Attempt, Feed, Interest, Met, Standing, State, Trouble};
use crate::document::Row;
use crate::ids::{Ordinal, Seq};
use crate::time::Timestamp;

/// What follows from looking at the next revision that a document is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this.
    Send(Attempt),
    /// Not now: it is in flight, or the outcome of the revision before is not durable.
    Wait,
    /// There is nothing to send for this revision. Once that is durable, the next one is to be looked for.
    Passed,
    /// Nothing is owed any more.
    Done,
}

impl Feed {
    /// The mark of a feed that sent every revision and now sends the newest: nothing is replaced beyond it.
    pub const NOTHING_OLDER: Seq = Seq(i64::MAX as u64);

    /// The mark of a feed that sends every revision: what was replaced up to here it does not see. `None` for a
    /// feed that sends only the newest.
    pub fn since(&self) -> Option<Seq> {
        self.few.since.filter(|since| *since != Feed::NOTHING_OLDER)
    }

    /// Whether the documents of this feed go the way of [`Feed::next_revision`] when they are due, one revision after
    /// the other, rather than that of [`Feed::retry`]. A feed that sent every revision goes on so for a while.
    pub fn is_in_turn(&self) -> bool {
        self.few.since.is_some()
    }

    /// From now on every revision is sent: what is newest at `head`, and all that comes. Answers the documents that
    /// have to be looked at once the next record is durable.
    pub fn every_revision(&mut self, head: Seq) -> Vec<Ordinal> {
        if self.since().is_some() {
            return Vec::new();
        }
        let in_turn = self.is_in_turn();
        self.few.make().since = Some(if self.rules.keeps(Rule::SinceNow) { head } else { Seq(0) });
        self.delta.dirty = true;
        if in_turn {
            return Vec::new();
        }
        let in_flight: Vec<_> = self.delta.open.iter().map(|(o, open)| (*o, open.seq, open.newer)).collect();
        for (ordinal, seq, newer) in in_flight {
            if let Some(newer) = newer {
                self.fill(&newer);
                self.stand_for_all(ordinal, seq);
            }
            // A document that has a standing has no hole, or a crash would find the two apart.
            if self.few.waiting.contains_key(&ordinal) {
                self.fill(&seq);
            }
        }
        if let Some(delta) = self.delta.any() {
            delta.open.values_mut().for_each(|open| open.newer = None);
        }
        let again = self.few.any().map(|few| std::mem::take(&mut few.again)).unwrap_or_default();
        for (ordinal, seq) in &again {
            self.fill(seq);
            if !self.few.waiting.contains_key(ordinal) {
                self.stand(*ordinal, *seq, State::Waiting { due: AT_ONCE });
            }
            self.wait_for_record(*ordinal);
        }
        if let Some(few) = self.few.any() {
            few.more.extend(few.waiting.keys());
        }
        again.into_keys().collect()
    }

    /// From now on only the newest revision is sent: whatever is owed of a document comes down to that, because the
    /// mark moves beyond all that was ever replaced. What stands, and what it stands for, stays as it is; the other
    /// way of keeping it is taken up again when there is nothing to be kept.
    pub fn newest_only(&mut self) {
        if self.since().is_some() {
            self.few.make().since = Some(Feed::NOTHING_OLDER);
            self.delta.dirty = true;
        }
    }

    /// A feed that sends only the newest revision again, and of which nothing is under way, owed or in doubt, is as if it
    /// had never sent all of them.
    pub(super) fn end_turns(&mut self) {
        let nothing_stands =
            self.few.waiting.is_empty() && self.delta.open.is_empty() && self.few.unrecorded.is_empty();
        let nothing_to_judge = self.few.judge.is_none() && self.few.unjudged.is_empty();
        if self.few.since == Some(Feed::NOTHING_OLDER) && nothing_stands && nothing_to_judge {
            if let Some(few) = self.few.any() {
                few.since = None;
                few.more.clear();
            }
            self.delta.dirty = true;
        }
    }

    /// From which change on a document that waits is owed to the client.
    pub fn owed_from(&self, ordinal: Ordinal) -> Option<Seq> {
        self.few.waiting.get(&ordinal).map(Standing::owed_from)
    }

    /// A replay of a document of which older revisions are owed: it comes with them, soon.
    pub(super) fn request_with_those_before(
        &mut self,
        ordinal: Ordinal,
        replay: u64,
        now: Timestamp,
    ) -> bool {
        let Some(standing) = self.few.waiting_mut(&ordinal) else { return false };
        if let State::Waiting { .. } = standing.state {
            standing.state = State::Waiting { due: now };
        }
        if standing.replay != 0 {
            standing.replay = replay;
            self.wait_for_record(ordinal);
        }
        self.delta.standings.insert(ordinal);
        self.delta.dirty = true;
        true
    }

    /// The reader meets a revision that is not settled.
    pub(super) fn read_revision(&mut self, row: &Row, interest: &mut impl Interest) -> Met {
        if let Some(open) = self.delta.open.get(&row.ordinal) {
            // An attempt that outran the reader, before every revision was wanted, may be for this very one.
            if open.seq < row.seq {
                self.stand_for_all(row.ordinal, open.seq);
            }
            return Met::Busy;
        }
        if self.few.waiting.contains_key(&row.ordinal) {
            self.few.make().more.insert(row.ordinal);
            return Met::Settled;
        }
        if self.few.unrecorded.contains(&row.ordinal) && self.rules.keeps(Rule::OutcomeDurable) {
            self.stand(row.ordinal, row.seq, State::Waiting { due: AT_ONCE });
            self.wait_for_record(row.ordinal);
            return Met::Owed;
        }
        self.delta.holes.insert(row.seq, row.ordinal);
        match self.begin(row, interest) {
            Some(attempt) => Met::Send(attempt),
            None => Met::Settled,
        }
    }

    /// A document that waits is decided on the first revision at or after [`Feed::owed_from`] that the feed can see;
    /// `found` is none if there is none. It was looked for when the log had at least what the reader has met. The
    /// caller has checked [`Feed::may_issue`], and `interest` is asked about that very revision.
    pub fn next_revision(
        &mut self,
        ordinal: Ordinal,
        found: Option<&Row>,
        interest: &mut impl Interest,
    ) -> Next {
        if self.delta.open.contains_key(&ordinal) || self.few.unrecorded.contains(&ordinal) {
            return Next::Wait;
        }
        // What the reader has not met yet it will meet, and this document then waits no more.
        let Some(row) = found.filter(|row| self.has_met(row.seq)) else {
            // What was owed may have been tried before a crash, and then removed from the history.
            if let Some(row) = found.filter(|_| self.rules.keeps(Rule::JudgeRemoved)) {
                self.judged(row);
            }
            self.owe_no_more(ordinal);
            return Next::Done;
        };
        if self.owed_from(ordinal).is_none_or(|from| row.seq < from) {
            return Next::Wait;
        }
        self.delta.dirty = true;
        let given_up = self.is_given_up(ordinal);
        match self.begin(row, interest) {
            Some(attempt) => Next::Send(attempt),
            None => {
                self.skipped(u64::from(given_up));
                self.pass_on(ordinal, row.seq, None);
                Next::Passed
            }
        }
    }

    /// Whether a revision was given up, and it is not known yet if another follows. To a client that wants only the
    /// newest it makes no difference.
    pub(super) fn is_given_up(&self, ordinal: Ordinal) -> bool {
        let passed = |standing: &Standing| standing.state == State::Passed && standing.trouble.is_some();
        self.since().is_some() && self.few.waiting.get(&ordinal).is_some_and(passed)
    }

    /// The change at `seq` is settled, and more of its document may be owed: durable before that is sent. What the
    /// client has, and any doubt about it, stays as it is. A revision that was given up takes its story along: if
    /// nothing follows it is a dead letter, and if something does it is counted as skipped.
    pub(super) fn pass_on(&mut self, ordinal: Ordinal, seq: Seq, given_up: Option<Box<Trouble>>) {
        self.stand(ordinal, seq, State::Passed);
        if let Some(standing) = self.few.waiting_mut(&ordinal) {
            standing.trouble = given_up;
        }
        self.few.make().more.insert(ordinal);
        self.wait_for_record(ordinal);
    }

    /// Nothing that the reader has met is owed of a document.
    pub(super) fn owe_no_more(&mut self, ordinal: Ordinal) {
        let Some(standing) = self.few.take_waiting(&ordinal) else { return };
        self.few.take_more(&ordinal);
        self.few.take_unjudged(ordinal.0);
        self.needs_no_judgement(ordinal);
        let doubt = self.few.doubt.contains(ordinal.0);
        if standing.state == State::Passed && standing.trouble.is_some() {
            self.few.make().dead.insert(ordinal.0);
            self.delta.dead.insert(ordinal, Standing { state: State::GaveUp, doubt, ..standing });
        } else if doubt && self.rules.keeps(Rule::PassedKeepsDoubt) {
            self.delta.doubtful.insert(ordinal, standing.seq);
        }
        self.delta.standings.insert(ordinal);
        self.delta.dirty = true;
    }

    /// Something that has to be durable before more of the document is sent: that it was asked for, the end of its
    /// lease, the outcome of the revision before.
    pub(super) fn wait_for_record(&mut self, ordinal: Ordinal) {
        self.few.make().unrecorded.insert(ordinal);
        // A record under way carries what was known before, not this.
        if let Some(under_way) = self.delta.under_way() {
            under_way.documents.remove(&ordinal);
        }
        self.delta.dirty = true;
    }

    /// A newer revision was met while one is in flight. A standing for the one in flight says that it and all
    /// that follows is owed, and then its hole is not needed.
    fn stand_for_all(&mut self, ordinal: Ordinal, open: Seq) {
        self.few.make().more.insert(ordinal);
        if self.few.waiting.contains_key(&ordinal) {
            return;
        }
        if self.rules.keeps(Rule::StandsForAll) {
            self.fill(&open);
            self.stand(ordinal, open, State::Waiting { due: AT_ONCE });
        } else {
            self.stand(ordinal, Seq(open.0 + 1), State::Waiting { due: AT_ONCE });
        }
    }

    fn stand(&mut self, ordinal: Ordinal, seq: Seq, state: State) {
        let doubt = self.few.doubt.contains(ordinal.0);
        // It is owed again, whatever was given up before.
        self.few.take_dead(ordinal.0);
        self.delta.dead.remove(&ordinal);
        self.few
            .make()
            .waiting
            .insert(ordinal, Standing { ordinal, seq, doubt, state, replay: 0, trouble: None });
        self.delta.standings.insert(ordinal);
        self.delta.dirty = true;
    }

    /// Whether the reader, of this life or of the one before, has met a change.
    fn has_met(&self, seq: Seq) -> bool {
        seq <= self.read || self.few.extras.contains(&seq) || self.was_ahead(seq)
    }

    /// The reader found nothing between its position and `seq`. Every change beyond the mark is a revision, so what
    /// is missing, and was not settled, went before the client could be given it.
    pub(super) fn count_missing(&mut self, seq: Seq) {
        let Some(since) = self.since() else { return };
        let (mut next, mut missing) = (self.read.max(since).0 + 1, 0);
        while next <= seq.0 {
            missing += u64::from(!self.has_met(Seq(next)));
            next += 1;
        }
        self.skipped(missing);
    }

    /// The revisions in flight, by document.
    pub fn revisions_in_flight(&self) -> impl Iterator<Item = (Ordinal, Seq)> + '_ {
        self.delta.open.iter().map(|(ordinal, open)| (*ordinal, open.seq))
    }

    /// Whether the client is yet to get a revision that was replaced after [`Feed::since`]: it is owed, or the reader
    /// has not come to it. What is in flight may arrive.
    pub fn lacks(&self, ordinal: Ordinal, seq: Seq) -> bool {
        let in_flight = self.delta.open.get(&ordinal).is_some_and(|open| open.seq == seq);
        let owed = || self.owed_from(ordinal).is_some_and(|from| from <= seq);
        self.since().is_some() && !in_flight && (!self.has_met(seq) || owed())
    }

    /// Revisions are about to be removed from the history though they may be needed: those that a standing owes are
    /// counted as skipped. Those beyond the reader are counted when it does not find them. Answers how many.
    pub fn lose(&mut self, revisions: &[(Ordinal, Seq)]) -> u64 {
        let owed = |(ordinal, seq): &&(Ordinal, Seq)| self.has_met(*seq) && self.lacks(*ordinal, *seq);
        let lost = revisions.iter().filter(owed).count() as u64;
        if lost > 0 {
            self.skipped(lost);
            self.delta.dirty = true;
        }
        lost
    }
}

/// No time is before this one.
const AT_ONCE: Timestamp = Timestamp::from_millis(0);
