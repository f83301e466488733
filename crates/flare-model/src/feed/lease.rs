//! Leases: an attempt that a client took away itself, to be settled by its own word or by the end of a time.
//!
//! The attempt stays open, so that nothing newer of its document is handed out meanwhile; and a standing tells the
//! ledger so, since a lease outlives the process: the next life finds it open again, and settles it like this one
//! would have. Whoever hands it out waits until that standing is durable.
//!
//! When a lease ends, the document is sent again only once its end is durable. So a lease that is found in the
//! ledger says that nothing at all was begun after it, and there is nothing to judge.

use super::rule::Rule;
use super::{Feed, Open, Settled, Standing, State, Trouble, Verdict};
use crate::ids::Ordinal;
use crate::time::Timestamp;

impl Feed {
    /// The attempt that is open for a document is handed to a client until `until`. `trouble` is what is to be
    /// remembered if nothing is heard of it; its attempts count this one.
    pub fn lease(&mut self, ordinal: Ordinal, until: Timestamp, trouble: Box<Trouble>) {
        let Some(open) = self.open.get_mut(&ordinal) else { return };
        open.leased = true;
        let (seq, replay) = (open.seq, open.replay);
        // What was given up before is followed by this one.
        self.tally.skipped += u64::from(self.is_given_up(ordinal));
        let doubt = self.few.doubt.contains(ordinal.0);
        let state = State::Leased { until };
        self.waiting.insert(ordinal, Standing { ordinal, seq, doubt, state, replay, trouble: Some(trouble) });
        self.few.take_dead(ordinal.0);
        self.delta.dead.remove(&ordinal);
        self.delta.standings.insert(ordinal);
        self.delta.dirty = true;
        // Its end may be heard when nobody knows any more what was handed out.
        if self.life % 2 == 1 {
            self.forget_state(ordinal);
        }
        self.settle_seq(seq);
    }

    /// What stands for a document that is leased now.
    pub fn leased(&self, ordinal: Ordinal) -> Option<&Standing> {
        self.waiting.get(&ordinal).filter(|standing| matches!(standing.state, State::Leased { .. }))
    }

    /// The documents that are leased now.
    pub fn leases(&self) -> impl Iterator<Item = &Standing> {
        self.waiting.values().filter(|standing| matches!(standing.state, State::Leased { .. }))
    }

    /// Whether what is said of a document waits for the next record to be taken. Once it does not, it is durable when
    /// the record under way is, or durable already.
    pub fn is_pending(&self, ordinal: Ordinal) -> bool {
        self.delta.standings.contains(&ordinal)
    }

    /// A lease that could not be handed over after all: as if its attempt had not been begun, but for the time to
    /// live of the revision, which has begun.
    pub fn take_back(&mut self, ordinal: Ordinal, now: Timestamp) -> Settled {
        let Some(trouble) = self.leased(ordinal).and_then(|standing| standing.trouble.clone()) else {
            return Settled::Done;
        };
        let trouble = Box::new(Trouble { attempts: trouble.attempts.saturating_sub(1), ..*trouble });
        self.settle(ordinal, Verdict::Retry { due: now, doubtful: false, trouble })
    }

    /// The end of a lease must be durable before anything more of its document is sent.
    pub(super) fn end_lease(&mut self, ordinal: Ordinal) {
        if self.rules.keeps(Rule::LeaseEndDurable) {
            self.wait_for_record(ordinal);
        }
    }

    /// Whether a hole belongs to a document that is leased. It stays where it is, however far the reader goes: its
    /// time is limited, and a standing for the newer change would take the place of the lease's.
    pub(super) fn is_held_by_lease(&self, ordinal: Ordinal) -> bool {
        self.open.get(&ordinal).is_some_and(|open| open.leased) && self.rules.keeps(Rule::LeaseStands)
    }

    /// The attempt of a lease that the life before handed out.
    pub(super) fn reopened(standing: &Standing) -> Option<Open> {
        let action = standing.trouble.as_ref()?.action;
        Some(Open { seq: standing.seq, action, replay: standing.replay, newer: None, leased: true })
    }
}
