//! The end of an attempt: a verdict comes in; bits, doubt, standing and holes change together.

use super::rule::Rule;
use super::{Action, Feed, Left, Note, Open, Settled, Standing, State, TRANSITION, Trouble, Verdict};
use crate::ids::{Ordinal, Seq};
use crate::time::Timestamp;

impl Feed {
    /// An attempt ended. All that follows from it goes out with one record, the next.
    pub fn settle(&mut self, ordinal: Ordinal, verdict: Verdict) -> Settled {
        let Some(open) = self.delta.any().and_then(|delta| delta.open.remove(&ordinal)) else {
            return Settled::Done;
        };
        self.delta.dirty = true;
        if open.leased {
            self.end_lease(ordinal);
        }
        let fails = matches!(verdict, Verdict::Retry { .. });
        let more = !fails && self.few.take_more(&ordinal) && self.rules.keeps(Rule::OwedToTheEnd);
        if self.few.since.is_some() && !fails {
            self.wait_for_record(ordinal);
        }
        // What was given up before is followed by this one.
        self.skipped(u64::from(self.is_given_up(ordinal)));
        let mut given_up = None;
        match verdict {
            Verdict::Delivered => {
                self.set_held(ordinal, open.action != Action::Delete);
                self.clear_standing_up_to(ordinal, open.seq);
                self.unnote(ordinal);
            }
            Verdict::Discarded { doubtful, story } => {
                self.mark_doubt(ordinal, &open, doubtful);
                let doubt = self.few.doubt.contains(ordinal.0);
                self.clear_standing_up_to(ordinal, open.seq);
                self.note_discard(ordinal, &open, story);
                if doubt && self.rules.keeps(Rule::DiscardKeepsDoubt) {
                    self.keep_doubt(ordinal, open.seq);
                }
            }
            Verdict::Retry { due, doubtful, trouble } => {
                self.mark_doubt(ordinal, &open, doubtful);
                // Even if the document changed meanwhile and is decided again at once: the standing carries
                // the doubt over a crash.
                if open.newer.is_none() || self.rules.keeps(Rule::StandsWhenChanged) {
                    self.owe(ordinal, &open, State::Waiting { due }, trouble);
                }
            }
            Verdict::GiveUp { doubtful, trouble } => {
                self.mark_doubt(ordinal, &open, doubtful);
                // A newer revision starts anew, so there is nothing to give up.
                if more {
                    given_up = Some(trouble);
                } else if open.newer.is_some() && self.rules.keeps(Rule::GiveUpNewest) {
                    let due = trouble.last_attempt_at;
                    self.owe(ordinal, &open, State::Waiting { due }, trouble);
                } else {
                    self.give_up(ordinal, &open, trouble);
                }
            }
        }
        self.settle_seq(open.seq);
        if more {
            if let Some(newer) = open.newer {
                self.fill(&newer);
            }
            self.pass_on(ordinal, open.seq, given_up);
            return Settled::Next;
        }
        match open.newer {
            Some(newer) => {
                self.few.make().again.insert(ordinal, newer);
                Settled::Again
            }
            None => Settled::Done,
        }
    }

    /// The client asked to drop a change. One that was only sent again it has all the same.
    fn note_discard(&mut self, ordinal: Ordinal, open: &Open, mut story: Option<Box<Trouble>>) {
        let has = open.replay != 0
            && open.action == Action::Update
            && !self.few.noted.contains(ordinal.0)
            && !self.few.doubt.contains(ordinal.0);
        // A replay takes the place of what was owed, and knows nothing of how that went.
        let unsure = open.replay != 0 && self.few.noted.contains(ordinal.0);
        if let Some(story) = story.as_mut().filter(|_| unsure) {
            story.unheard = true;
        }
        let leaves = open.replay == TRANSITION && open.action == Action::Delete;
        let left = if leaves && self.has_settled(ordinal) { Left::LeaveDiscarded } else { Left::Discarded };
        if !has {
            self.note(Note { ordinal, seq: open.seq, left, story });
        }
    }

    /// Whether the client has the newest change of a document that is settled, for sure.
    pub(super) fn has_settled(&self, ordinal: Ordinal) -> bool {
        let n = ordinal.0;
        self.held.contains(n) && !self.few.doubt.contains(n) && !self.few.noted.contains(n)
    }

    /// While the reader is more than `window` changes beyond the oldest hole, that hole becomes a standing, so
    /// that one hanging request does not stop the cursor for ever. A lease does not last for ever.
    pub fn displace(&mut self, window: u64, now: Timestamp) {
        while let Some((seq, ordinal)) = self.first_hole() {
            if self.read.0.saturating_sub(seq.0) < window {
                return;
            }
            self.fill(&seq);
            self.delta.dirty = true;
            if !self.rules.keeps(Rule::DisplacedStands) {
                continue;
            }
            let standing = Standing {
                ordinal,
                seq,
                doubt: self.few.doubt.contains(ordinal.0),
                state: State::Waiting { due: now },
                // An attempt for a replay, or a further one for this change, has a standing and no hole.
                replay: 0,
                trouble: None,
            };
            // It is owed again, whatever was given up before.
            self.few.take_dead(ordinal.0);
            self.delta.dead.remove(&ordinal);
            self.few.make().waiting.insert(ordinal, standing);
            self.delta.standings.insert(ordinal);
        }
    }

    /// The first change that is not settled, but for those that are on a lease.
    fn first_hole(&self) -> Option<(Seq, Ordinal)> {
        let mut holes = self.delta.holes.iter().map(|(seq, ordinal)| (*seq, *ordinal));
        holes.find(|(_, ordinal)| !self.is_held_by_lease(*ordinal))
    }

    /// No change holds the cursor at `seq` any more.
    pub(super) fn fill(&mut self, seq: &Seq) {
        if let Some(delta) = self.delta.any() {
            delta.holes.remove(seq);
        }
    }

    /// The client will not get so many revisions, though it wants all of them.
    pub(super) fn skipped(&mut self, revisions: u64) {
        if revisions > 0 {
            self.tally.skipped += revisions;
        }
    }

    /// Nothing holds the cursor at `seq` any more.
    pub(super) fn settle_seq(&mut self, seq: Seq) {
        self.fill(&seq);
        if seq > self.read && self.rules.keeps(Rule::Outrun) {
            self.few.make().extras.insert(seq);
        }
    }

    pub(super) fn set_held(&mut self, ordinal: Ordinal, has: bool) {
        let changed = if has { self.held.insert(ordinal.0) } else { self.held.remove(ordinal.0) };
        if changed {
            self.delta.held.insert(ordinal, has);
        }
    }

    fn mark_doubt(&mut self, ordinal: Ordinal, open: &Open, doubtful: bool) {
        let leaves = open.action.leaves_doubt() || !self.rules.keeps(Rule::UpdateIsSafe);
        if doubtful && leaves && self.rules.keeps(Rule::Doubt) {
            self.few.make().doubt.insert(ordinal.0);
        }
    }

    fn owe(&mut self, ordinal: Ordinal, open: &Open, state: State, trouble: Box<Trouble>) {
        let doubt = self.few.doubt.contains(ordinal.0);
        let own =
            Standing { ordinal, seq: open.seq, doubt, state, replay: open.replay, trouble: Some(trouble) };
        // A newer change that was pushed out of the window stands already: that one stays, it covers more.
        let newer = self.few.take_waiting(&ordinal).filter(|standing| standing.seq > open.seq);
        self.few.take_dead(ordinal.0);
        self.few
            .make()
            .waiting
            .insert(ordinal, newer.map_or(own, |standing| Standing { doubt, state, ..standing }));
        self.delta.standings.insert(ordinal);
    }

    fn give_up(&mut self, ordinal: Ordinal, open: &Open, trouble: Box<Trouble>) {
        self.few.take_waiting(&ordinal);
        self.few.make().dead.insert(ordinal.0);
        let doubt = self.few.doubt.contains(ordinal.0);
        let (state, replay) = (State::GaveUp, open.replay);
        let standing = Standing { ordinal, seq: open.seq, doubt, state, replay, trouble: Some(trouble) };
        self.delta.dead.insert(ordinal, standing);
        self.delta.standings.insert(ordinal);
    }

    /// Nothing is owed for the change at `seq`, but what the client has stays unknown.
    pub(super) fn keep_doubt(&mut self, ordinal: Ordinal, seq: Seq) {
        self.few.make().doubt.insert(ordinal.0);
        self.delta.doubtful.insert(ordinal, seq);
        self.delta.standings.insert(ordinal);
    }

    /// The document is done: delivered, or nothing is left to send.
    pub(super) fn clear_standing(&mut self, ordinal: Ordinal) {
        let was_waiting = self.few.take_waiting(&ordinal).is_some();
        let was_dead = self.few.take_dead(ordinal.0);
        let was_doubted = self.few.take_doubt(ordinal.0);
        if was_waiting || was_dead || was_doubted {
            self.delta.standings.insert(ordinal);
            self.delta.dead.remove(&ordinal);
            self.delta.doubtful.remove(&ordinal);
        }
    }

    /// The change at `seq` is done; a newer one that was pushed out of the window is not.
    fn clear_standing_up_to(&mut self, ordinal: Ordinal, seq: Seq) {
        if self.few.waiting.get(&ordinal).is_some_and(|standing| standing.seq > seq) {
            self.few.take_doubt(ordinal.0);
            self.delta.standings.insert(ordinal);
        } else {
            self.clear_standing(ordinal);
        }
    }
}
