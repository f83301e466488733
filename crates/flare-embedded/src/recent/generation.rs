//! A generation: the changes of some commits, sorted as the tables want them.

use std::collections::{BTreeMap, BTreeSet};

use super::change::Change;
use crate::place::place;

/// Entries that are not in the tables yet, and entries of the tables that are stale.
#[derive(Debug, Default)]
pub(crate) struct Generation {
    /// Hash and document.
    pub by_url: BTreeSet<(i64, i64)>,
    /// Place and document.
    pub by_ordinal: BTreeMap<i64, i64>,
    /// Place and document.
    pub by_seq: BTreeMap<i64, i64>,
    /// Places to take out of `by_seq`: their documents moved on.
    pub stale: BTreeSet<i64>,
    /// Documents that are no more, to be taken out of everything.
    pub removed: Vec<Removed>,
    /// The newest commit in it.
    pub last: i64,
    /// How many changes are in it.
    pub changes: usize,
    /// It was found in the journal after a restart: part of it may have been folded by the life before, so an entry
    /// that is in here may be in a table too. It stays so for what is added later, until all of it is folded.
    pub partly_folded: bool,
}

/// The keys of a document that is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removed {
    pub url: (i64, i64),
    pub ordinal: i64,
    pub seq: i64,
}

impl Generation {
    /// Takes a change in.
    pub fn apply(&mut self, change: Change) {
        self.changes += 1;
        match change {
            Change::Born { document, lane, ordinal, seq, hash } => {
                self.by_url.insert((hash, document));
                self.by_ordinal.insert(place(lane, ordinal), document);
                self.by_seq.insert(place(lane, seq), document);
            }
            Change::Moved { document, lane, seq, from } => {
                let from = place(lane, from);
                if self.by_seq.remove(&from).is_none() || self.partly_folded {
                    self.stale.insert(from);
                }
                self.by_seq.insert(place(lane, seq), document);
            }
            Change::Removed { document, lane, ordinal, seq, hash } => {
                let removed =
                    Removed { url: (hash, document), ordinal: place(lane, ordinal), seq: place(lane, seq) };
                self.by_url.remove(&removed.url);
                self.by_ordinal.remove(&removed.ordinal);
                self.by_seq.remove(&removed.seq);
                self.removed.push(removed);
            }
        }
    }

    /// The documents that may have a url of this hash.
    pub fn with_hash(&self, hash: i64) -> impl Iterator<Item = i64> + '_ {
        self.by_url.range((hash, i64::MIN)..=(hash, i64::MAX)).map(|(_, document)| *document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BORN: Change = Change::Born { document: 7, lane: 1, ordinal: 0, seq: 1, hash: 99 };
    const MOVED: Change = Change::Moved { document: 7, lane: 1, seq: 2, from: 1 };

    #[test]
    fn a_document_that_moved_within_a_generation_leaves_nothing_behind() {
        let mut generation = Generation::default();
        generation.apply(BORN);
        generation.apply(MOVED);
        assert_eq!(generation.by_seq, BTreeMap::from([(place(1, 2), 7)]));
        assert!(generation.stale.is_empty());
    }

    #[test]
    fn a_document_that_moved_out_of_a_table_leaves_a_stale_entry() {
        let mut generation = Generation::default();
        generation.apply(MOVED);
        assert_eq!(generation.stale, BTreeSet::from([place(1, 1)]));
    }

    #[test]
    fn after_a_restart_any_entry_may_be_in_a_table() {
        let mut generation = Generation { partly_folded: true, ..Generation::default() };
        generation.apply(BORN);
        generation.apply(MOVED);
        assert_eq!(generation.stale, BTreeSet::from([place(1, 1)]));
        assert_eq!(generation.by_seq, BTreeMap::from([(place(1, 2), 7)]));
    }

    #[test]
    fn documents_are_found_by_hash_whatever_their_number() {
        let mut generation = Generation::default();
        for document in [1, 5, i64::MAX] {
            let ordinal = document as u64 % 64;
            generation.apply(Change::Born { document, lane: 1, ordinal, seq: ordinal + 1, hash: -3 });
        }
        generation.apply(BORN);
        assert_eq!(generation.with_hash(-3).collect::<Vec<_>>(), [1, 5, i64::MAX]);
        let removed = Change::Removed { document: 5, lane: 1, ordinal: 5, seq: 6, hash: -3 };
        generation.apply(removed);
        assert_eq!(generation.with_hash(-3).collect::<Vec<_>>(), [1, i64::MAX]);
        assert_eq!(generation.removed.len(), 1);
    }
}
