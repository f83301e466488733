//! Kept state: the documents as the client last got them, for subscriptions that need them. What was delivered comes
//! in, and goes out with the very record that says it was delivered.
//!
//! A state may be used only if it is certain that the client has exactly that. So it is forgotten when an attempt
//! ends with an unknown outcome, and after a crash none of the life before is believed, since an update that was open
//! then may have arrived: every state carries the number of the *life* that wrote it, and a life that begins with
//! anything unknown has the next number of its kind. States of other numbers are as if they were not there.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::{Action, Attempt, Feed, Record, Verdict};
use crate::ids::Ordinal;
use crate::revision::Revision;

/// A document as a client last got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its revision.
    pub revision: Revision,
    /// Its bytes.
    pub content: Bytes,
}

/// What changed of the states: a state, or that it is not known any more.
type Changes = BTreeMap<Ordinal, Option<Arc<Kept>>>;

/// States that are not durable yet. Bound: what the feed settled since its last durable record; its owner looks at
/// [`Feed::keeping_bytes`] and asks for a record in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Keeping {
    /// For the next record.
    changed: Changes,
    /// How large they are.
    bytes: usize,
    /// In the record under way.
    recording: Changes,
}

impl Attempt {
    /// Whether what it tells may be told as a difference to the state that is kept: only then is it certain what the
    /// client has. Whoever asks for a replay does not trust that.
    pub fn builds_on_state(&self) -> bool {
        self.action == Action::Update && self.replay == 0
    }
}

impl Feed {
    /// The client now has the document in this state; `None`: in which is not known, or it is gone.
    fn keep(&mut self, ordinal: Ordinal, state: Option<Arc<Kept>>) {
        self.delta.dirty = true;
        let keeping = self.delta.keeping.get_or_insert_default();
        keeping.bytes += state.as_ref().map_or(0, |state| state.content.len());
        keeping.changed.insert(ordinal, state);
    }

    /// What the end of an attempt says about the client's state; to be called just before it is settled. `sent` is what
    /// was sent, or `None` where it is not to be kept. Answers what is known from now on, if that changed.
    pub fn keep_as(
        &mut self,
        attempt: &Attempt,
        verdict: &Verdict,
        sent: impl FnOnce() -> Option<Arc<Kept>>,
    ) -> Option<Option<Arc<Kept>>> {
        let state = match verdict {
            Verdict::Delivered if attempt.action == Action::Delete => None,
            Verdict::Delivered => sent(),
            // It may have arrived all the same.
            Verdict::Retry { doubtful: true, .. }
            | Verdict::GiveUp { doubtful: true, .. }
            | Verdict::Discarded { doubtful: true, .. } => None,
            Verdict::Retry { .. } | Verdict::GiveUp { .. } | Verdict::Discarded { .. } => return None,
        };
        self.keep(attempt.ordinal, state.clone());
        Some(state)
    }

    /// From now on it is not known in which state the client has a document.
    pub fn forget_state(&mut self, ordinal: Ordinal) {
        self.keep(ordinal, None);
    }

    /// What is not durable yet of a document's state: `None` when the ledger knows better.
    pub fn keeping(&self, ordinal: Ordinal) -> Option<Option<Arc<Kept>>> {
        let keeping = self.delta.keeping.as_ref()?;
        keeping.changed.get(&ordinal).or_else(|| keeping.recording.get(&ordinal)).cloned()
    }

    /// How many bytes of states wait for the next record.
    pub fn keeping_bytes(&self) -> usize {
        self.delta.keeping.as_ref().map_or(0, |keeping| keeping.bytes)
    }

    /// The life whose states are believed.
    pub fn life(&self) -> u64 {
        self.life
    }

    /// Whether states are kept from now on. A life keeps all of them or none, the odd ones do: so whatever a client
    /// was told while nothing was kept, no older state is taken for what it has.
    pub fn keep_states(&mut self, keeps: bool) {
        if keeps == (self.life % 2 == 1) {
            return;
        }
        self.life += 1;
        self.delta.keeping = None;
        self.delta.dirty = true;
    }

    pub(super) fn record_states(&mut self, record: &mut Record) {
        record.life = self.life;
        let Some(keeping) = self.delta.any().and_then(|delta| delta.keeping.as_mut()) else { return };
        keeping.recording = std::mem::take(&mut keeping.changed);
        keeping.bytes = 0;
        for (ordinal, state) in &keeping.recording {
            match state {
                Some(state) => record.kept.push((*ordinal, state.clone())),
                None => record.forgotten.push(*ordinal),
            }
        }
    }

    pub(super) fn recorded_states(&mut self) {
        let Some(delta) = self.delta.any() else { return };
        if let Some(keeping) = &mut delta.keeping {
            keeping.recording.clear();
            if keeping.changed.is_empty() {
                delta.keeping = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::{Saved, Taken};
    use crate::ids::Seq;

    fn state(revision: i64) -> Option<Arc<Kept>> {
        Some(Arc::new(Kept { revision: Revision::Integer(revision), content: Bytes::from_static(b"{}") }))
    }

    #[test]
    fn a_state_is_known_here_until_the_ledger_has_it() {
        let mut feed = Feed::open(Saved::default(), Seq(0));
        let one = Ordinal(1);
        assert_eq!(feed.keeping(one), None);
        feed.keep(one, state(1));
        assert_eq!(feed.keeping(one), Some(state(1)));
        let Taken { record, receipt } = feed.take_record().expect("something changed");
        assert_eq!(record.kept, [(one, state(1).unwrap())]);
        assert_eq!(feed.keeping(one), Some(state(1)), "it is not durable yet");
        feed.keep(one, None);
        feed.recorded(receipt);
        assert_eq!(feed.keeping(one), Some(None), "a later word is not durable yet");
        let Taken { record, receipt } = feed.take_record().expect("something changed");
        assert_eq!((record.kept, record.forgotten), (vec![], vec![one]));
        feed.recorded(receipt);
        assert_eq!(feed.keeping(one), None, "now the ledger knows");
    }

    #[test]
    fn a_discard_says_nothing_of_the_state_unless_an_earlier_request_may_have_arrived() {
        let mut feed = Feed::open(Saved::default(), Seq(0));
        let attempt = Attempt {
            ordinal: Ordinal(1),
            seq: Seq(1),
            action: Action::Update,
            replay: 0,
            attempts: 0,
            first_attempt_at: None,
            unheard: false,
        };
        let kept = |feed: &mut Feed, doubtful| {
            feed.keep_as(&attempt, &Verdict::Discarded { doubtful, story: None }, || state(2))
        };
        assert_eq!(kept(&mut feed, false), None);
        assert_eq!(kept(&mut feed, true), Some(None), "no patch is built on what it may not have any more");
    }

    #[test]
    fn a_life_that_begins_with_anything_unknown_believes_no_state() {
        let open = |issued, strange| {
            let saved = Saved { cursor: Seq(5), issued: Seq(issued), life: 7, strange, ..Saved::default() };
            Feed::open(saved, Seq(9)).life()
        };
        assert_eq!(open(0, false), 7, "after a clean stop");
        assert_eq!(open(5, false), 9, "retries may have been under way");
        assert_eq!(open(9, false), 9);
        assert_eq!(open(0, true), 9, "another log");
        let mut feed = Feed::open(Saved { life: 7, ..Saved::default() }, Seq(9));
        feed.keep(Ordinal(1), state(1));
        feed.begin_again(Seq(9));
        assert_eq!((feed.life(), feed.keeping(Ordinal(1))), (9, None));
        assert_eq!(feed.take_record().expect("dirty").record.life, 9);
    }

    #[test]
    fn states_from_before_a_time_without_them_are_not_believed() {
        let mut feed = Feed::open(Saved::default(), Seq(0));
        feed.keep_states(false);
        assert_eq!((feed.life(), feed.is_changed()), (0, false), "a feed that keeps none pays nothing");
        feed.keep_states(true);
        feed.keep_states(true);
        assert_eq!(feed.life(), 1);
        feed.keep(Ordinal(1), state(1));
        feed.keep_states(false);
        assert_eq!((feed.life(), feed.keeping(Ordinal(1))), (2, None));
        feed.keep_states(true);
        assert_eq!(feed.take_record().expect("dirty").record.life, 3);
    }
}
