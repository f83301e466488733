//! Rows: which changes of a lane are the newest of their documents, so that whoever is behind can be told how many documents
//! that is. Changes come in as they are committed, and once what the store had before; a number goes out.
//!
//! Bound: some two bytes for each document of the lane.

use flare_model::ids::Seq;
use flare_provider::Newest;
use roaring::RoaringTreemap;

/// The newest changes of a lane.
#[derive(Default)]
pub struct Rows {
    newest: Newest,
    /// What was replaced or removed before the store was asked what it has; nothing once it was.
    gone: Option<RoaringTreemap>,
    /// Another node has written: nobody says here which changes those replaced.
    lost: bool,
}

/// How many documents have changed beyond a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// That are live.
    pub live: u64,
    /// That are deleted.
    pub deleted: u64,
}

impl Rows {
    /// Of a lane of which `head` is the newest change: the store has to be asked, unless there is nothing in it.
    pub fn new(head: Seq) -> Rows {
        Rows { gone: (head > Seq(0)).then(RoaringTreemap::new), ..Rows::default() }
    }

    /// There are changes of which it is not known what they replaced: from now on nothing is counted.
    pub fn lose_track(&mut self) {
        *self = Rows { lost: true, ..Rows::default() };
    }

    /// A change took the place of another, or of none.
    pub fn change(&mut self, seq: Seq, replaced: Seq, deleted: bool) {
        if self.lost {
            return;
        }
        if replaced > Seq(0) {
            self.remove(replaced);
        }
        self.newest.seqs.insert(seq.0);
        if deleted {
            self.newest.tombstones.insert(seq.0);
        }
    }

    /// A tombstone is no more.
    pub fn remove(&mut self, seq: Seq) {
        self.newest.seqs.remove(seq.0);
        self.newest.tombstones.remove(seq.0);
        if let Some(gone) = &mut self.gone {
            gone.insert(seq.0);
        }
    }

    /// Whether the store has to be asked.
    pub fn is_partial(&self) -> bool {
        self.gone.is_some()
    }

    /// What the store has, or had a moment ago. A number is never given out twice, so what is gone since is known.
    pub fn load(&mut self, stored: Newest) {
        let Some(gone) = self.gone.take() else { return };
        self.newest.seqs |= stored.seqs - &gone;
        self.newest.tombstones |= stored.tombstones - &gone;
    }

    /// How many documents have changed beyond `after`, and not beyond `upto`; `None` while that is not known.
    pub fn between(&self, after: Seq, upto: Seq) -> Option<Beyond> {
        if self.gone.is_some() || self.lost {
            return None;
        }
        let count = |set: &RoaringTreemap| set.rank(upto.0).saturating_sub(set.rank(after.0));
        let (all, deleted) = (count(&self.newest.seqs), count(&self.newest.tombstones));
        Some(Beyond { live: all - deleted, deleted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(rows: &Rows, after: u64) -> Option<(u64, u64)> {
        rows.between(Seq(after), Seq(u64::MAX)).map(|beyond| (beyond.live, beyond.deleted))
    }

    #[test]
    fn a_document_that_changes_often_counts_once() {
        let mut rows = Rows::new(Seq(0));
        rows.change(Seq(1), Seq(0), false);
        for seq in 2..1_000 {
            rows.change(Seq(seq), Seq(seq - 1), false);
        }
        rows.change(Seq(1_000), Seq(0), true);
        assert_eq!(beyond(&rows, 0), Some((1, 1)));
        assert_eq!(beyond(&rows, 999), Some((0, 1)));
        assert_eq!(rows.between(Seq(0), Seq(999)), Some(Beyond { live: 1, deleted: 0 }));
        rows.remove(Seq(1_000));
        assert_eq!((beyond(&rows, 0), beyond(&rows, 1_000)), (Some((1, 0)), Some((0, 0))));
    }

    #[test]
    fn what_is_replaced_while_the_store_is_asked_does_not_come_back() {
        let mut rows = Rows::new(Seq(3));
        rows.change(Seq(4), Seq(2), false);
        rows.change(Seq(5), Seq(4), true);
        assert_eq!((beyond(&rows, 0), rows.is_partial()), (None, true));
        let seqs = [1, 2, 3].into_iter().collect();
        let tombstones = [3].into_iter().collect();
        rows.load(Newest { seqs, tombstones });
        assert_eq!(beyond(&rows, 0), Some((1, 2)), "1 is live, 3 and 5 are deleted");
        rows.load(Newest { seqs: [9].into_iter().collect(), ..Newest::default() });
        assert_eq!(beyond(&rows, 0), Some((1, 2)), "it is known already");
    }
}
