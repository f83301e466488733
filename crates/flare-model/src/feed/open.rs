//! The beginning and the end of a feed's life: what is in doubt after a crash, and how a clean stop leaves none.

use std::collections::BTreeMap;

use roaring::RoaringTreemap;

use super::few::{Few, Sets};
use super::rule::{Rule, Rules};
use super::{Ahead, Feed, Pending, Saved, Standing, State, Tally, UnderWay};
use crate::document::Row;
use crate::ids::{Ordinal, Seq};
use crate::sorted::Sorted;

/// After a crash nobody knows what was sent beyond the recorded cursor. Each document met beyond it is judged
/// once, against the marks as they were found; meanwhile the recorded cursor rests, so that a second crash
/// finds the same. It ends when the reader has once reached the tail and all it had read by then is settled.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judge {
    /// The cursor as it was found.
    pub cursor: Seq,
    /// Nothing beyond this was sent: the mark as it was found, or where the lane ended then.
    pub issued: Seq,
    /// What was settled beyond the cursor in the life before.
    pub ahead: Ahead,
    /// Documents of which the life before can have sent nothing that this one does not know of: those that
    /// were judged, and those that were met as that life had settled them.
    pub done: RoaringTreemap,
    /// Where the tail was when the reader first reached it.
    pub until: Option<Seq>,
}

/// What a life leaves to the next one to judge, see [`Record`](super::Record).
#[derive(Default)]
pub(super) struct LeftToJudge {
    pub judging: Seq,
    pub unjudged: RoaringTreemap,
    pub judged: RoaringTreemap,
}

impl Feed {
    /// A new life of a feed, from what the ledger has. `head` is the newest change of the lane now.
    pub fn open(saved: Saved, head: Seq) -> Feed {
        Feed::open_under(Rules::default(), saved, head)
    }

    pub(super) fn open_under(rules: Rules, saved: Saved, head: Seq) -> Feed {
        match saved.is_of_another_log(head) {
            true if rules.keeps(Rule::OtherLog) => Feed::start_over(rules, saved, head),
            _ => Feed::resume(rules, saved, head),
        }
    }

    fn resume(rules: Rules, saved: Saved, head: Seq) -> Feed {
        let mut doubt = saved.dead_in_doubt;
        let mut waiting = BTreeMap::new();
        let mut unjudged = RoaringTreemap::new();
        let (mut open, mut done) = (Sorted::new(), saved.judged);
        for standing in saved.standings {
            if standing.doubt {
                doubt.insert(standing.ordinal.0);
            }
            if let State::Waiting { .. } | State::Passed = standing.state {
                // Without a mark nothing at all was sent since the clean stop, retries included: then only those are
                // judged that were waiting for it already.
                let sent = saved.issued > Seq(0) || saved.unjudged.contains(standing.ordinal.0);
                let again = saved.judging > Seq(0) && !rules.keeps(Rule::StandingsOnce);
                if (sent || again) && rules.keeps(Rule::JudgeStandings) {
                    unjudged.insert(standing.ordinal.0);
                }
                waiting.insert(standing.ordinal, standing);
            } else if let State::Leased { .. } = standing.state {
                if rules.keeps(Rule::LeaseSurvives) {
                    open.extend(Feed::reopened(&standing).map(|lease| (standing.ordinal, lease)));
                }
                done.insert(standing.ordinal.0);
                waiting.insert(standing.ordinal, standing);
            }
        }
        // What they cover is not known any more.
        let more = waiting.keys().copied().filter(|_| saved.since.is_some()).collect();
        let ahead = if rules.keeps(Rule::Ahead) { saved.ahead } else { Ahead::default() };
        let extras = ahead.extras.iter().copied().collect();
        // What has not happened yet was not sent, however far the mark had been raised for it.
        let issued = saved.issued.max(saved.judging);
        let issued = if rules.keeps(Rule::NotBeyondHead) { issued.min(head) } else { issued };
        let needed = issued > saved.cursor || ahead.horizon > saved.cursor;
        let (dead, noted, untold) = (saved.dead, saved.noted, saved.untold);
        let judge =
            needed.then(|| Box::new(Judge { cursor: saved.cursor, issued, ahead, done, until: None }));
        let sweep = saved.sweep.map(Box::new);
        let sets = Sets { extras, doubt, dead, unjudged, more, noted, untold, ..Sets::default() };
        let sets = Sets { waiting, judge, sweep, since: saved.since, ..sets };
        Feed {
            read: saved.cursor,
            issued: saved.issued,
            held: saved.held,
            few: Few::holding(sets),
            changes: saved.filtering.as_ref().map_or(0, |filtering| filtering.swept),
            filtering: saved.filtering,
            tally: saved.tally.into(),
            // Whatever may have been sent and is not recorded may have changed what the client has.
            life: saved.life + if saved.issued > Seq(0) { 2 } else { 0 },
            delta: Pending::leased(open),
            rules,
        }
    }

    /// The numbers belong to another log. Nothing is believed but that the client may have anything: as if
    /// all there is had been sent, and nothing of it were settled. Said with the marks that every feed has, it
    /// outlives a crash before everything has been decided again. The bits go, or a document that gets the
    /// number of one the log has lost would seem to be with the client.
    fn start_over(rules: Rules, saved: Saved, head: Seq) -> Feed {
        let (tally, filtering) = (saved.tally, saved.filtering);
        let since = saved.since.map(|since| if since == Feed::NOTHING_OLDER { since } else { head });
        let believed = Saved { issued: head, since, tally, filtering, ..Saved::default() };
        let mut feed = Feed::resume(rules, believed, head);
        feed.issued = Seq(0);
        feed.life = saved.life + 2;
        feed.delta.issue = head;
        feed.delta.dirty = true;
        if rules.keeps(Rule::OtherDocuments) {
            feed.delta.held = saved.held.iter().map(|ordinal| (Ordinal(ordinal), false)).collect();
        } else {
            feed.held = saved.held;
        }
        let standings = saved.standings.iter().map(|standing| standing.ordinal);
        feed.delta.standings = standings.chain(saved.dead.iter().map(Ordinal)).collect();
        feed.delta.notes = saved.noted.iter().map(|ordinal| (Ordinal(ordinal), None)).collect();
        feed
    }

    /// Forgets all that is known of the client, as if the numbers belonged to another log: changes that it
    /// needed may be gone. Nothing is in flight. To do it twice is as to do it once.
    pub fn begin_again(&mut self, head: Seq) {
        debug_assert!(self.delta.open.is_empty(), "nothing is in flight");
        let pending = std::mem::take(&mut self.delta);
        // All is decided again, under the newest filter.
        if let Some(filtering) = &mut self.filtering {
            filtering.swept = self.changes;
        }
        let saved = Saved {
            held: std::mem::take(&mut self.held),
            standings: self
                .few
                .any()
                .map(|few| std::mem::take(&mut few.waiting))
                .unwrap_or_default()
                .into_values()
                .collect(),
            dead: &self.few.dead | &self.few.doubt,
            noted: self.few.noted.clone(),
            since: self.few.since,
            tally: Tally::clone(&self.tally),
            life: self.life,
            filtering: self.filtering.take(),
            ..Saved::default()
        };
        *self = Feed::start_over(self.rules, saved, head);
        // A record under way says nothing that is known any more, but there is no other before it is durable.
        self.delta.under_way = pending.under_way.as_ref().map(|_| UnderWay::default());
        // What was not recorded yet may be otherwise in the ledger: it goes there too.
        if self.rules.keeps(Rule::ForgetUnrecorded) {
            self.delta.held.extend(pending.held.keys().map(|ordinal| (*ordinal, false)));
            self.delta.standings.extend(&pending.standings);
        }
        self.delta.notes.extend(pending.notes.keys().map(|ordinal| (*ordinal, None)));
    }

    /// The reader has met every row there is.
    pub fn reached_tail(&mut self) {
        let read = self.read;
        if let Some(judge) = self.few.judge_mut()
            && judge.until.is_none()
        {
            judge.until = Some(read);
            self.delta.dirty = true;
        }
    }

    /// Nothing is in flight but leases, and nothing will be sent: the last record of a clean stop says so, and the next
    /// life has nothing to doubt but what this one has not judged. It takes the mark back altogether, not only to the
    /// cursor: the next life then has to ask for a mark before it retries anything, and its absence tells that no retry
    /// was under way.
    pub fn close(&mut self) {
        self.take_mark_back();
    }

    /// Nothing is in flight but leases, and nothing is sent for now. What the origin changes meanwhile was then never
    /// sent, whatever ends this life: the mark is taken back as by a clean stop, with the record that has the last
    /// outcomes, and asked for again when something is to be sent. Safe to repeat.
    pub fn pause(&mut self) {
        if self.rules.keeps(Rule::PauseIsClean) {
            self.take_mark_back();
        }
    }

    fn take_mark_back(&mut self) {
        debug_assert!(self.delta.open.values().all(|open| open.leased), "nothing is in flight");
        let mark = if self.rules.keeps(Rule::StopIsClean) { Seq(0) } else { self.cursor() };
        let asked = self.delta.issue.max(self.delta.under_way.as_ref().map_or(Seq(0), |taken| taken.issued));
        if mark == self.issued && asked <= mark {
            return;
        }
        // In force is never more than what is durable, and what the next record says is this.
        self.issued = self.issued.min(mark);
        self.delta.issue = mark;
        self.delta.dirty = true;
        if let Some(under_way) = self.delta.under_way().filter(|_| self.rules.keeps(Rule::TakenBackStays)) {
            under_way.issued = Seq(0);
        }
    }

    /// What a record with the mark `issued` says of judging, so that it outlives a clean stop. With a mark the next life
    /// judges everything, whatever this one has: then the sets are empty.
    pub(super) fn left_to_judge(&self, issued: Seq) -> LeftToJudge {
        if !self.rules.keeps(Rule::StopKeepsJudging) {
            return LeftToJudge::default();
        }
        let nothing_sent = issued == Seq(0);
        let judge = self.few.judge.as_deref().filter(|judge| judge.issued > judge.cursor);
        // After the tail no change is judged, and once nothing is in flight every doubt is in a standing.
        let at_the_end = |judge: &&Judge| judge.until.is_some() && self.rules.keeps(Rule::TailOnce);
        let judge = judge.filter(|judge| !(nothing_sent && at_the_end(judge)));
        let judging = judge.map_or(Seq(0), |judge| judge.issued);
        if !nothing_sent {
            return LeftToJudge { judging, ..LeftToJudge::default() };
        }
        let judge = judge.filter(|_| self.rules.keeps(Rule::ChangesOnce));
        let judged = judge.map_or_else(RoaringTreemap::new, |judge| judge.done.clone());
        LeftToJudge { judging, unjudged: self.few.unjudged.clone(), judged }
    }

    /// Whether the client may lack what it holds or have what it does not. Judged once and then remembered.
    pub(super) fn judged(&mut self, row: &Row) -> bool {
        let ordinal = row.ordinal.0;
        let doubt = self.judgement(row);
        self.few.take_unjudged(ordinal);
        let further = !self.rules.keeps(Rule::JudgeNoFurther);
        if let Some(judge) = self.few.judge_mut()
            && (judge.until.is_none() || further)
        {
            judge.done.insert(ordinal);
        }
        if doubt {
            self.few.make().doubt.insert(ordinal);
        }
        doubt
    }

    /// What [`Feed::judged`] says, or will say when the reader or a retry comes to this row.
    pub(super) fn judgement(&self, row: &Row) -> bool {
        let ordinal = row.ordinal.0;
        let held = self.held.contains(ordinal);
        let standing = self.few.waiting.get(&row.ordinal).map(Standing::owed_from);
        let mut doubt = self.judgement_by_cursor(row, held, standing) | self.few.doubt.contains(ordinal);
        if let Some(seq) = standing.filter(|_| self.few.unjudged.contains(ordinal)) {
            let reborn = row.before >= seq && self.rules.keeps(Rule::BeforeStanding);
            // It may have left and come back, and the delete between may have been sent.
            let left = self.is_selective() && self.rules.keeps(Rule::SelectiveStanding);
            doubt |= !held || row.deleted || reborn || left;
        }
        doubt
    }

    /// Whether a life before this one may have sent this very change, and nothing of that is known. For people: what
    /// follows from it is for [`Feed::judged`] to say.
    pub(super) fn may_have_been_sent(&self, row: &Row) -> bool {
        let (ordinal, judge) = (row.ordinal.0, self.few.judge.as_deref());
        let marked = judge.is_some_and(|judge| row.seq <= judge.issued);
        match self.few.waiting.get(&row.ordinal) {
            Some(standing) => {
                self.few.unjudged.contains(ordinal) && (standing.owed_from() == row.seq || marked)
            }
            None => judge.is_some_and(|judge| {
                let settled = row.seq <= judge.cursor || judge.ahead.contains(row.seq);
                marked && !settled && judge.until.is_none() && !judge.done.contains(ordinal)
            }),
        }
    }

    fn judgement_by_cursor(&self, row: &Row, held: bool, standing: Option<Seq>) -> bool {
        let selective = self.is_selective();
        let Some(judge) = &self.few.judge else { return false };
        // At the tail every document was met, or had not changed since the recorded cursor. What is judged
        // later is judged wrongly, and nothing would keep the judgement over the next crash.
        if judge.until.is_some() && self.rules.keeps(Rule::JudgeNoFurther) {
            return false;
        }
        if judge.done.contains(row.ordinal.0) && self.rules.keeps(Rule::JudgeOnce) {
            return false;
        }
        // A standing says itself what may have been sent: it was made when the document had been judged, with the
        // doubt there was, and whatever followed is judged against it. By the cursor it would be judged otherwise
        // after a change between the newest revision and all of them, and a notification would be another one.
        if standing.is_some() {
            return false;
        }
        let (cursor, issued) = (judge.cursor, judge.issued);
        let known = row.seq <= cursor || judge.ahead.contains(row.seq) || standing == Some(row.seq);
        if known || issued <= cursor || !self.rules.keeps(Rule::JudgeChanges) {
            return false;
        }
        // The client lacks what it holds only if a delete was sent, and has what it does not hold only if
        // anything was: some change of the document that lies beyond the cursor and not beyond the mark.
        let reborn = row.before > cursor && self.rules.keeps(Rule::BeforeChange);
        let sent = row.born <= issued || reborn;
        // With a filter it may have left and come back since.
        let left = selective && self.rules.keeps(Rule::SelectiveChange);
        sent && (!held || row.deleted || reborn || left)
    }

    /// The reader met the document as the life before had settled it: nothing was sent about it beyond that.
    pub(super) fn needs_no_judgement(&mut self, ordinal: Ordinal) {
        if let Some(judge) = self.few.judge_mut()
            && judge.until.is_none()
        {
            judge.done.insert(ordinal.0);
        }
    }

    pub(super) fn was_ahead(&self, seq: Seq) -> bool {
        self.few.judge.as_ref().is_some_and(|judge| judge.ahead.contains(seq) && seq > judge.cursor)
    }

    /// Ends the rest of the cursor once nothing that the life before may have sent is left to judge.
    pub(super) fn end_judging(&mut self) {
        let cursor = self.cursor();
        let through = |judge: &Judge| {
            let settled = judge.until.is_some_and(|until| cursor >= until);
            judge.ahead.horizon <= self.read && (settled || !self.rules.keeps(Rule::JudgeToTheTail))
        };
        if self.few.judge.as_deref().is_some_and(through)
            && let Some(few) = self.few.any()
        {
            few.judge = None;
        }
    }
}
