//! Notes: why a client lacks a change of which nothing is owed any more. An end without a delivery comes in; what people
//! are told of it later goes out.
//!
//! A note decides nothing: what is sent, and whether a tombstone stays, is the same with and without it. There is one at
//! most for each document, and it goes when the client takes something newer, or has nothing of it and is to have nothing.
//! Only which documents have one is in memory; the ledger has the rest.

use super::{Action, Feed, Trouble};
use crate::document::Row;
use crate::ids::{Ordinal, Seq};
use crate::time::Timestamp;

/// Why a client lacks a change of which nothing is owed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// The document.
    pub ordinal: Ordinal,
    /// The change that the client lacks.
    pub seq: Seq,
    /// How it came.
    pub left: Left,
    /// How the attempts went, where there were any.
    pub story: Option<Box<Trouble>>,
}

/// How a change was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// The client asked to drop it.
    Discarded,
    /// It was given up, and then its dead letter was dropped.
    Dropped,
    /// The subscription's `when` said not to tell it, to a client that has the document.
    HeldBack,
    /// An expression of the subscription had no result for it, and the client was left with what it has.
    Unclear,
    /// It was asked for again while it was owed or given up.
    Asked,
    /// The client has the change. By a changed filter it is to have the document no more, and it asked to drop the delete.
    LeaveDiscarded,
    /// The same, and the delete was given up, and then its dead letter was dropped.
    LeaveDropped,
}

impl Left {
    /// Whether the client was to have it: then it lags. What its own expressions held back it is not to have.
    pub fn lags(self) -> bool {
        !matches!(self, Left::HeldBack | Left::Unclear)
    }

    /// Whether the client has the change, and did not take that it is to lose the document.
    pub fn stays(self) -> bool {
        matches!(self, Left::LeaveDiscarded | Left::LeaveDropped)
    }
}

impl Note {
    /// Whether the client may have taken the change all the same; `None` where nobody knows how the attempts went.
    pub fn may_have_arrived(&self) -> Option<bool> {
        match (self.left, &self.story) {
            (_, Some(story)) => Some(story.unheard),
            (Left::Asked, None) => None,
            (_, None) => Some(false),
        }
    }
}

impl Feed {
    /// Notes that the client lacks a change.
    pub(super) fn note(&mut self, note: Note) {
        let sets = self.few.make();
        sets.noted.insert(note.ordinal.0);
        if note.left.lags() {
            sets.untold.remove(note.ordinal.0);
        } else {
            sets.untold.insert(note.ordinal.0);
        }
        self.delta.notes.insert(note.ordinal, Some(note));
        self.delta.dirty = true;
    }

    /// The client was not told of a change on purpose. What it lacked before says more, and to write the same again with
    /// every change would cost more than it tells. `unheard`: a life before this one may have sent it.
    pub(super) fn note_untold(&mut self, row: &Row, left: Left, unheard: bool) {
        let (ordinal, seq) = (row.ordinal, row.seq);
        if !self.held.contains(ordinal.0) || self.few.noted.contains(ordinal.0) && !unheard {
            return;
        }
        let nobody_knows = || {
            let at = Timestamp::from_millis(0);
            Box::new(Trouble {
                attempts: 0,
                first_attempt_at: at,
                last_attempt_at: at,
                action: Action::Update,
                status: None,
                error: None,
                response: None,
                unheard: true,
                has: None,
                lent: None,
            })
        };
        self.note(Note { ordinal, seq, left, story: unheard.then(nobody_knows) });
    }

    /// The client has taken something newer, or there is nothing that it lacks.
    pub(super) fn unnote(&mut self, ordinal: Ordinal) {
        let Some(sets) = self.few.any() else { return };
        if sets.noted.remove(ordinal.0) {
            sets.untold.remove(ordinal.0);
            self.delta.notes.insert(ordinal, None);
            self.delta.dirty = true;
        }
    }
}
