//! A row comes in, from the reader or for a retry; a request to send comes out, or nothing.

use super::rule::Rule;
use super::{Action, Attempt, Feed, Interest, Left, Met, Open, TRANSITION, decide};
use crate::document::Row;
use crate::ids::Seq;

impl Feed {
    /// The reader meets the next row of the lane. Rows come in order of `seq`, each the newest of its document
    /// when it was fetched, or, with [`Feed::since`], every one that was replaced after that; the caller has
    /// checked [`Feed::may_issue`].
    pub fn read(&mut self, row: &Row, interest: &mut impl Interest) -> Met {
        debug_assert!(row.seq > self.read, "rows come in order");
        self.skip_to(Seq(row.seq.0 - 1));
        self.read = row.seq;
        self.delta.dirty = true;
        match self.few.outran.get(&row.ordinal) {
            // The row was fetched before the change that a retry has sent meanwhile.
            Some(sent) if *sent > row.seq && self.rules.keeps(Rule::OutdatedRead) => return Met::Settled,
            _ => self.few.take_outran(&row.ordinal),
        };
        if self.few.take_extras(&row.seq) || self.was_ahead(row.seq) {
            // Where every revision is sent, the next one may have been under way.
            if self.few.since.is_none() || !self.rules.keeps(Rule::JudgeNextRevision) {
                self.needs_no_judgement(row.ordinal);
            }
            return Met::Settled;
        }
        if self.few.since.is_some() {
            return self.read_revision(row, interest);
        }
        let delta = &mut *self.delta;
        if let Some(open) = delta.open.get_mut(&row.ordinal) {
            if open.seq != row.seq
                && let Some(superseded) = open.newer.replace(row.seq)
            {
                delta.holes.remove(&superseded);
            }
            if !self.rules.keeps(Rule::OpenHolds) {
                delta.holes.remove(&open.seq);
            }
            delta.holes.insert(row.seq, row.ordinal);
            return Met::Busy;
        }
        if let Some(superseded) = self.few.take_again(&row.ordinal) {
            self.fill(&superseded);
        }
        if self.few.waiting.get(&row.ordinal).is_some_and(|standing| standing.seq == row.seq) {
            return Met::Settled;
        }
        self.delta.holes.insert(row.seq, row.ordinal);
        // What was asked for, or came back from a lease, is decided once that is durable.
        if self.few.unrecorded.contains(&row.ordinal) {
            self.few.make().again.insert(row.ordinal, row.seq);
            return Met::Busy;
        }
        match self.begin(row, interest) {
            Some(attempt) => Met::Send(attempt),
            None => Met::Settled,
        }
    }

    /// There is no row between the reader's position and `seq` (all of them moved on).
    pub fn skip_to(&mut self, seq: Seq) {
        if seq > self.read {
            self.count_missing(seq);
            self.read = seq;
            self.delta.dirty = true;
        }
        // Whatever was settled here has moved on too.
        if let Some(few) = self.few.any() {
            while few.extras.first().is_some_and(|settled| *settled <= self.read) {
                few.extras.pop_first();
            }
        }
    }

    /// A document that is owed, or that changed while it was in flight, is decided on its newest row. `None`:
    /// nothing to send, now or any more. The caller has checked [`Feed::may_issue`].
    pub fn retry(&mut self, row: &Row, interest: &mut impl Interest) -> Option<Attempt> {
        let unrecorded = self.few.unrecorded.contains(&row.ordinal) && self.rules.keeps(Rule::ReplayDurable);
        if self.delta.open.contains_key(&row.ordinal) || unrecorded {
            return None;
        }
        let changed = self.few.again.get(&row.ordinal).copied();
        let owed = self.few.waiting.get(&row.ordinal).map(|standing| standing.seq);
        let newest = changed.max(owed)?;
        // The row was fetched before the change that the reader has met meanwhile.
        if row.seq < newest && self.rules.keeps(Rule::OutdatedRetry) {
            return None;
        }
        self.few.take_again(&row.ordinal);
        if let Some(superseded) = changed.filter(|seq| *seq != row.seq) {
            self.fill(&superseded);
        }
        self.delta.dirty = true;
        self.begin(row, interest)
    }

    /// Decides about a row and opens the attempt, or settles the row with nothing to send.
    pub(super) fn begin(&mut self, row: &Row, interest: &mut impl Interest) -> Option<Attempt> {
        let unheard = self.may_have_been_sent(row) || self.was_unheard(row);
        let doubt = self.judged(row);
        let held = self.held.contains(row.ordinal.0);
        if row.seq > self.read {
            self.few.make().outran.insert(row.ordinal, row.seq);
        }
        // What is asked for again the client has, unless something else is known of it.
        let again = self.few.waiting.get(&row.ordinal).is_some_and(|s| s.seq == row.seq && s.replay != 0);
        let Some(wanted) = self.wants(row, interest) else {
            self.leave_as_is(row, doubt, (!again).then_some(Left::Unclear), unheard);
            return None;
        };
        // What is said of an older change, how often it was tried and which replay wanted it, is not said of
        // this one: a change has the same identity in every life, whatever else was asked for.
        let own = !self.rules.keeps(Rule::ReplayOwnId);
        let asked = self.few.waiting.get(&row.ordinal).filter(|standing| standing.seq == row.seq || own);
        let asked = asked.map_or(0, |standing| standing.replay);
        let told = asked == TRANSITION && self.rules.keeps(Rule::TransitionOnly);
        let decided = decide(wanted, held, doubt);
        let action = decided.filter(|action| !(told && *action == Action::Update));
        let Some(action) = action else {
            self.clear_standing(row.ordinal);
            if decided.is_none() {
                self.unnote(row.ordinal);
            }
            self.settle_with_nothing(row);
            return None;
        };
        let tells = interest.tells(action);
        if tells != Some(true) {
            let left = if tells.is_some() { Left::HeldBack } else { Left::Unclear };
            self.leave_as_is(row, doubt, (!again).then_some(left), unheard);
            return None;
        }
        // Unless a standing does, a hole has to hold the cursor below this attempt until it is settled. There is
        // none if the reader has not come here yet, or has passed by because the document had moved on.
        if !self.few.waiting.contains_key(&row.ordinal) && self.rules.keeps(Rule::OpenAheadHolds) {
            self.delta.holes.insert(row.seq, row.ordinal);
        }
        let standing = self.few.waiting.get(&row.ordinal).filter(|standing| standing.seq == row.seq || own);
        let trouble = standing.and_then(|standing| standing.trouble.as_deref());
        let attempt = Attempt {
            ordinal: row.ordinal,
            seq: row.seq,
            action,
            replay: if asked == TRANSITION { 0 } else { asked },
            attempts: trouble.map_or(0, |trouble| trouble.attempts),
            first_attempt_at: trouble.map(|trouble| trouble.first_attempt_at),
            unheard: unheard || trouble.is_some_and(|trouble| trouble.unheard),
        };
        let open = Open { seq: row.seq, action, replay: asked, newer: None, leased: false };
        self.delta.open.insert(row.ordinal, open);
        Some(attempt)
    }

    /// Whether an attempt of this very change was sent and not answered, as the standing for it says.
    fn was_unheard(&self, row: &Row) -> bool {
        let standing = self.few.waiting.get(&row.ordinal).filter(|standing| standing.seq == row.seq);
        standing.and_then(|standing| standing.trouble.as_ref()).is_some_and(|trouble| trouble.unheard)
    }

    /// Whether the client is to have the document: it is live, and not excluded. `None`: nobody can tell.
    pub(super) fn wants(&self, row: &Row, interest: &mut impl Interest) -> Option<bool> {
        if row.deleted {
            return Some(false);
        }
        if self.rules.keeps(Rule::Membership) { interest.includes() } else { Some(true) }
    }

    /// Nothing is sent and nothing changes: neither what the client has nor any doubt about it.
    fn leave_as_is(&mut self, row: &Row, doubt: bool, left: Option<Left>, unheard: bool) {
        if let Some(left) = left {
            self.note_untold(row, left, unheard);
        }
        self.clear_standing(row.ordinal);
        if doubt && self.rules.keeps(Rule::UntoldKeepsDoubt) {
            self.keep_doubt(row.ordinal, row.seq);
        }
        self.settle_with_nothing(row);
    }

    /// Nothing was sent for a row. Where every revision is, the next one waits until that is durable, or a crash would
    /// have this one decided again after it.
    fn settle_with_nothing(&mut self, row: &Row) {
        self.settle_seq(row.seq);
        if self.few.since.is_some() && self.rules.keeps(Rule::NothingDurable) {
            self.wait_for_record(row.ordinal);
        }
    }
}
