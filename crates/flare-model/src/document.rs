//! A document as the log keeps it, and what a write to it asks for and gets.

use std::sync::Arc;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{LaneId, Ordinal, Seq};
use crate::revision::Revision;
use crate::time::Timestamp;

/// The newest state of a document, or its tombstone.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Where it lives.
    pub lane: LaneId,
    /// What the rules of a feed need to know of it.
    pub row: Row,
    /// Its normalised url.
    pub url: Arc<str>,
    /// As the origin wrote it.
    pub revision: Revision,
    /// When Flare accepted the last change.
    pub updated_at: Timestamp,
    /// The origin's own bytes; empty for a tombstone.
    pub content: Bytes,
}

/// The numbers that decide who is told what about a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// The document, within its lane.
    pub ordinal: Ordinal,
    /// Its last change.
    pub seq: Seq,
    /// The first change of its present life; a tombstone keeps that of the life it ended.
    pub born: Seq,
    /// The delete that ended the life before the present one, 0 if there was none.
    pub before: Seq,
    /// Whether it is a tombstone.
    pub deleted: bool,
}

/// What an origin asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The lane of the document, by [`crate::ids::lane_of`].
    pub lane: LaneId,
    /// The normalised url.
    pub url: Arc<str>,
    /// Put or delete.
    pub intent: Intent,
    /// When it was asked.
    pub at: Timestamp,
    /// The version of the catalog by which the lane was found: a newer one may name another.
    pub routed_by: u64,
}

/// The two things an origin can say of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Intent {
    /// This is it now.
    Put {
        /// Only a newer one wins.
        revision: Revision,
        /// The document's bytes.
        content: Bytes,
    },
    /// It is gone.
    Delete {
        /// Below the current one the delete is stale; without one the tombstone takes the current.
        revision: Option<Revision>,
    },
}

/// What became of a write. All of them are answered only once the row they compared with is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The document did not exist, or was deleted.
    Created,
    /// It has a newer revision now.
    Updated,
    /// The revision is the one Flare has.
    Unchanged,
    /// The revision is older than the one Flare has.
    Stale,
    /// It is a tombstone now.
    Deleted,
    /// There was nothing to delete.
    Absent,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Outcome; 6] = [
        Outcome::Created,
        Outcome::Updated,
        Outcome::Unchanged,
        Outcome::Stale,
        Outcome::Deleted,
        Outcome::Absent,
    ];

    /// The word used in `Flare-Outcome` and in bulk answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Created => "created",
            Outcome::Updated => "updated",
            Outcome::Unchanged => "unchanged",
            Outcome::Stale => "stale",
            Outcome::Deleted => "deleted",
            Outcome::Absent => "absent",
        }
    }
}

/// What a write does to a document, decided purely: every engine applies the same rule inside its commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Nothing changes.
    Nothing(Outcome),
    /// It is refused: the revision is a date where the document has integers, or the other way round. Compared, it
    /// would bury what is there for good, or be ignored for ever.
    OtherKind,
    /// The document becomes this; `seq` and, for a new document, `ordinal` are the lane's next.
    Change {
        /// What to answer.
        outcome: Outcome,
        /// The new row, with `seq` given.
        row: Row,
        /// The revision it now has.
        revision: Revision,
        /// The content it now has (empty for a tombstone).
        content: Bytes,
    },
}

/// Applies `intent` to what the lane has. `next_seq` and `next_ordinal` are what the lane would give out.
pub fn apply(
    current: Option<(&Row, &Revision)>,
    intent: &Intent,
    next_seq: Seq,
    next_ordinal: Ordinal,
) -> Effect {
    let asked = match intent {
        Intent::Put { revision, .. } => Some(revision),
        Intent::Delete { revision } => revision.as_ref(),
    };
    if let (Some((_, has)), Some(asked)) = (current, asked)
        && !asked.is_of_kind(has)
    {
        return Effect::OtherKind;
    }
    match (current, intent) {
        (None, Intent::Put { revision, content }) => Effect::Change {
            outcome: Outcome::Created,
            row: Row { ordinal: next_ordinal, seq: next_seq, born: next_seq, before: Seq(0), deleted: false },
            revision: revision.clone(),
            content: content.clone(),
        },
        (Some((row, has)), Intent::Put { revision, content }) => match revision.cmp(has) {
            std::cmp::Ordering::Less => Effect::Nothing(Outcome::Stale),
            // A tombstone's own revision does not bring the document back either (promise 7).
            std::cmp::Ordering::Equal => Effect::Nothing(Outcome::Unchanged),
            std::cmp::Ordering::Greater if row.deleted => Effect::Change {
                outcome: Outcome::Created,
                row: Row { seq: next_seq, born: next_seq, before: row.seq, deleted: false, ..*row },
                revision: revision.clone(),
                content: content.clone(),
            },
            std::cmp::Ordering::Greater => Effect::Change {
                outcome: Outcome::Updated,
                row: Row { seq: next_seq, ..*row },
                revision: revision.clone(),
                content: content.clone(),
            },
        },
        (None, Intent::Delete { revision: None }) => Effect::Nothing(Outcome::Absent),
        (None, Intent::Delete { revision: Some(revision) }) => Effect::Change {
            outcome: Outcome::Absent,
            row: Row { ordinal: next_ordinal, seq: next_seq, born: next_seq, before: Seq(0), deleted: true },
            revision: revision.clone(),
            content: Bytes::new(),
        },
        (Some((row, has)), Intent::Delete { revision }) => {
            let newer = revision.as_ref().is_some_and(|asked| asked > has);
            let stale = revision.as_ref().is_some_and(|asked| asked < has);
            if stale {
                Effect::Nothing(Outcome::Stale)
            } else if row.deleted && !newer {
                Effect::Nothing(Outcome::Absent)
            } else {
                Effect::Change {
                    outcome: if row.deleted { Outcome::Absent } else { Outcome::Deleted },
                    row: Row { seq: next_seq, deleted: true, ..*row },
                    revision: revision.clone().unwrap_or_else(|| has.clone()),
                    content: Bytes::new(),
                }
            }
        }
    }
}
