//! Leases: an attempt that a client took away itself, to be settled by its own word or by the end of a time.
//!
//! The attempt stays open, so that nothing newer of its document is handed out meanwhile; and a standing tells the
//! ledger so, since a lease outlives the process: the next life finds it open again, and settles it like this one
//! would have. Whoever hands it out waits until that standing is durable.
//!
//! When a lease ends, the document is sent again only once its end is durable. So a lease that is found in the
//! ledger says that nothing at all was begun after it, and there is nothing to judge.

use serde::{Deserialize, Serialize};

use super::rule::Rule;
use super::{Feed, Open, Settled, Standing, State, Trouble, Verdict};
use crate::ids::Ordinal;
use crate::revision::Revision;
use crate::time::Timestamp;

/// What there is to know of a lease beside its end. It goes with the lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lent {
    /// Its end as it was handed out. The client's token has it, and it stays when the lease is extended.
    pub until: Timestamp,
    /// The revision that was handed out, in the parts that a store keeps: the document may have moved on since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<(i64, u32, Option<String>)>,
    /// The stream that it was sent on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Sent>,
}

/// A notification that a stream was given.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sent {
    /// Which stream: a number that no other has, in this life or another.
    pub stream: u64,
    /// Its place among what that stream was given. They are sent in this order.
    pub position: u64,
    /// The id of the notification.
    pub id: String,
}

impl Lent {
    /// A lease that ends then, of this revision.
    pub fn new(until: Timestamp, revision: Option<&Revision>, sent: Option<Sent>) -> Lent {
        let parts = |revision: &Revision| {
            let (value, nanos, text) = revision.to_parts();
            (value, nanos, text.map(str::to_owned))
        };
        Lent { until, revision: revision.map(parts), sent }
    }

    /// The revision that was handed out; not known of what was handed out before this was kept.
    pub fn revision(&self) -> Option<Revision> {
        let (value, nanos, text) = self.revision.as_ref()?;
        Some(Revision::from_parts(*value, *nanos, text.as_deref()))
    }
}

impl Feed {
    /// The attempt that is open for a document is handed to a client until `until`. `trouble` is what is to be
    /// remembered if nothing is heard of it; its attempts count this one.
    pub fn lease(&mut self, ordinal: Ordinal, until: Timestamp, trouble: Box<Trouble>) {
        let Some(open) = self.delta.any().and_then(|delta| delta.open.get_mut(&ordinal)) else { return };
        open.leased = true;
        let (seq, replay) = (open.seq, open.replay);
        // What was given up before is followed by this one.
        self.skipped(u64::from(self.is_given_up(ordinal)));
        let doubt = self.few.doubt.contains(ordinal.0);
        let state = State::Leased { until };
        self.few
            .make()
            .waiting
            .insert(ordinal, Standing { ordinal, seq, doubt, state, replay, trouble: Some(trouble) });
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

    /// A lease lasts until `until`, or until its end if that is later. What its client knows it by stays as it is. Answers
    /// when it ends now; `None` where there is none.
    pub fn extend(&mut self, ordinal: Ordinal, until: Timestamp) -> Option<Timestamp> {
        let standing = self.few.waiting_mut(&ordinal)?;
        let State::Leased { until: end } = &mut standing.state else { return None };
        let trouble = standing.trouble.as_mut()?;
        trouble.lent.get_or_insert_with(|| Box::new(Lent::new(*end, None, None)));
        *end = until.max(*end);
        let end = *end;
        self.delta.standings.insert(ordinal);
        self.delta.dirty = true;
        Some(end)
    }

    /// What stands for a document that is leased now.
    pub fn leased(&self, ordinal: Ordinal) -> Option<&Standing> {
        self.few.waiting.get(&ordinal).filter(|standing| matches!(standing.state, State::Leased { .. }))
    }

    /// The documents that are leased now.
    pub fn leases(&self) -> impl Iterator<Item = &Standing> {
        self.few.waiting.values().filter(|standing| matches!(standing.state, State::Leased { .. }))
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
        let attempts = trouble.attempts.saturating_sub(1);
        let trouble = Box::new(Trouble { attempts, lent: None, ..*trouble });
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
        self.delta.open.get(&ordinal).is_some_and(|open| open.leased) && self.rules.keeps(Rule::LeaseStands)
    }

    /// The attempt of a lease that the life before handed out.
    pub(super) fn reopened(standing: &Standing) -> Option<Open> {
        let action = standing.trouble.as_ref()?.action;
        Some(Open { seq: standing.seq, action, replay: standing.replay, newer: None, leased: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Row;
    use crate::feed::{Action, Everything, Met, Saved, Taken};
    use crate::ids::Seq;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// A feed whose document is leased until 1000.
    fn leased() -> Feed {
        let mut feed = Feed::open(Saved { issued: Seq(9), ..Saved::default() }, Seq(1));
        let row = Row { ordinal: Ordinal(0), seq: Seq(1), born: Seq(1), before: Seq(0), deleted: false };
        assert!(matches!(feed.read(&row, &mut Everything), Met::Send(_)));
        let trouble = Trouble {
            attempts: 1,
            first_attempt_at: at(0),
            last_attempt_at: at(0),
            action: Action::Create,
            status: None,
            error: None,
            response: None,
            unheard: false,
            has: None,
            lent: None,
        };
        feed.lease(Ordinal(0), at(1_000), Box::new(trouble));
        record(&mut feed);
        feed
    }

    fn record(feed: &mut Feed) -> Vec<Standing> {
        let Taken { record, receipt } = feed.take_record().expect("something changed");
        feed.recorded(receipt);
        record.standings
    }

    #[test]
    fn an_extended_lease_is_recorded_with_its_new_end_and_known_by_its_first() {
        let mut feed = leased();
        assert_eq!(feed.extend(Ordinal(0), at(5_000)), Some(at(5_000)));
        assert_eq!(feed.extend(Ordinal(0), at(3_000)), Some(at(5_000)), "it is never shortened");
        assert_eq!(feed.extend(Ordinal(1), at(5_000)), None);
        assert!(feed.is_pending(Ordinal(0)));
        let standings = record(&mut feed);
        assert_eq!(standings[0].state, State::Leased { until: at(5_000) });
        let lent = standings[0].trouble.as_ref().and_then(|trouble| trouble.lent.as_ref());
        assert_eq!(lent.map(|lent| lent.until), Some(at(1_000)));
        assert!(feed.leased(Ordinal(0)).is_some());
        feed.settle(Ordinal(0), Verdict::Delivered);
        assert_eq!(feed.extend(Ordinal(0), at(9_000)), None, "it is over");
    }

    #[test]
    fn a_revision_comes_back_as_the_origin_wrote_it() {
        for revision in [Revision::Integer(i64::MIN), Revision::from_parts(7, 8, Some("1970-01-01"))] {
            let lent = Lent::new(at(1), Some(&revision), None);
            let json = serde_json::to_string(&lent).expect("plain data");
            let back: Lent = serde_json::from_str(&json).expect("as it was written");
            assert_eq!(back.revision().map(|revision| revision.to_string()), Some(revision.to_string()));
            assert_eq!(back, lent);
        }
    }
}
