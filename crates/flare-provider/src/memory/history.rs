//! Older revisions in memory: what is replaced comes in, by document and in order of change it goes out.

use std::collections::BTreeMap;

use flare_model::document::Document;
use flare_model::ids::{Ordinal, Seq};
use flare_model::time::Timestamp;

use crate::documents::OlderRevision;

/// The older revisions of a lane.
#[derive(Clone, Default)]
pub(super) struct History {
    by_document: BTreeMap<(Ordinal, Seq), Older>,
}

#[derive(Clone)]
struct Older {
    document: Document,
    until: Seq,
    replaced_at: Timestamp,
}

impl History {
    pub fn extend(&mut self, replaced: Option<Document>, until: Seq, replaced_at: Timestamp) {
        let entry = |document: Document| {
            ((document.row.ordinal, document.row.seq), Older { document, until, replaced_at })
        };
        self.by_document.extend(replaced.map(entry));
    }

    pub fn len(&self) -> usize {
        self.by_document.len()
    }

    /// In no order: those made by a change at or beyond `from`, and replaced by one beyond `since`.
    pub fn beyond(&self, from: Seq, since: Seq) -> impl Iterator<Item = &Document> {
        let seen = move |older: &&Older| older.document.row.seq >= from && older.until > since;
        self.by_document.values().filter(seen).map(|older| &older.document)
    }

    /// The first one of a document.
    pub fn first(&self, ordinal: Ordinal, from: Seq, since: Seq) -> Option<&Document> {
        let mut own = self.by_document.range((ordinal, from)..=(ordinal, Seq(u64::MAX)));
        own.find(|(_, older)| older.until > since).map(|(_, older)| &older.document)
    }

    pub fn kept(&self, after: Option<(Ordinal, Seq)>, limit: usize) -> Vec<OlderRevision> {
        let beyond = self.by_document.iter().filter(|(key, _)| after.is_none_or(|after| **key > after));
        let kept = |(&(ordinal, seq), older): (&(Ordinal, Seq), &Older)| OlderRevision {
            ordinal,
            seq,
            until: older.until,
            replaced_at: older.replaced_at,
        };
        beyond.take(limit).map(kept).collect()
    }

    pub fn remove(&mut self, revision: &(Ordinal, Seq)) -> bool {
        self.by_document.remove(revision).is_some()
    }
}
