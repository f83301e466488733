//! What a feed keeps for filters: which one it has been swept for, and counters. A changed filter comes in; a
//! sweep over all that was decided under the one before goes out, now or after the sweep that is under way.

use super::rule::Rule;
use super::{Feed, SweepKind, TRANSITION};
use crate::ids::Seq;
use crate::time::Timestamp;

/// What the feed of a subscription with a filter, now or once, keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Filtering {
    /// The change of the filter that everything was decided again for, or is being.
    pub swept: u64,
    /// A filter has been there: between two changes of a document that are known, a client may have been sent a
    /// delete that is not. It never goes back, since what was sent under a filter outlives the filter.
    pub selective: bool,
    /// How often a document was found to be none of the client's.
    pub excluded: u64,
    /// How often a client was not told.
    pub not_told: u64,
    /// How often an expression had no result.
    pub errors: u64,
    /// The last time.
    pub last_error: Option<Example>,
}

/// An expression that had no result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Example {
    /// When.
    pub at: Timestamp,
    /// For which document.
    pub document: String,
    /// Why.
    pub error: String,
}

impl Filtering {
    /// Adds the counters of another lane; of the errors the later one stays.
    pub fn add(&mut self, other: &Filtering) {
        self.excluded += other.excluded;
        self.not_told += other.not_told;
        self.errors += other.errors;
        if other.last_error.as_ref().map(|last| last.at) > self.last_error.as_ref().map(|last| last.at) {
            self.last_error = other.last_error.clone();
        }
    }
}

impl Feed {
    /// The owner says what the subscription has: whether there is a `filter` and how often it was changed since
    /// the subscription was created. Called when a feed is opened, and whenever that changes. Safe to repeat.
    pub fn select(&mut self, has_filter: bool, changes: u64) {
        if !has_filter && changes == 0 {
            return;
        }
        let filtering = self.filtering.get_or_insert_default();
        if !filtering.selective {
            filtering.selective = true;
            self.delta.dirty = true;
        }
        self.changes = self.changes.max(changes);
        self.sift();
    }

    /// Begins the sweep that a changed filter needs, unless another one has to end first; one for an earlier
    /// filter too, since what it has passed by was decided under that one.
    pub(super) fn sift(&mut self) {
        let Some(filtering) = &self.filtering else { return };
        let behind = filtering.swept < self.changes;
        if !behind || !self.rules.keeps(Rule::SweepFilter) {
            return;
        }
        if !self.start_sweep(SweepKind::Filter, TRANSITION) && self.rules.keeps(Rule::FilterQueues) {
            return;
        }
        // Nothing was decided yet.
        if let Some(few) = self.few.any() {
            few.sweep.take_if(|sweep| sweep.end == Seq(0));
        }
        if let Some(filtering) = &mut self.filtering {
            filtering.swept = self.changes;
        }
        self.delta.dirty = true;
    }

    /// What is kept for filters, if there is or was one.
    pub fn filtering(&self) -> Option<&Filtering> {
        self.filtering.as_deref()
    }

    /// The same, to be changed; it goes out with the next record.
    pub fn filtering_mut(&mut self) -> &mut Filtering {
        self.delta.dirty = true;
        self.filtering.get_or_insert_default()
    }

    /// Whether deletes may have been sent for documents that are live.
    pub(super) fn is_selective(&self) -> bool {
        self.filtering.as_ref().is_some_and(|filtering| filtering.selective)
    }
}
