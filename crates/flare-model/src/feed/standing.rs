//! Standings: the documents of a feed that are not simply "settled up to the cursor".
//!
//! A standing is written when an attempt fails, when a replay asks for a document, or when a client's state
//! is in doubt and nothing is owed. It goes when the document is delivered or nothing is left to send.

use serde::{Deserialize, Serialize};

use super::{Action, Lent};
use crate::ids::{Ordinal, Seq};
use crate::time::Timestamp;

/// One document that needs more than the cursor to describe.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The document.
    pub ordinal: Ordinal,
    /// The change of the document this stands for.
    pub seq: Seq,
    /// Whether the client may or may not have the document: an earlier create or delete has an unknown outcome.
    pub doubt: bool,
    /// What is owed.
    pub state: State,
    /// The replay that asked for it, 0 for none, or [`TRANSITION`]. A replay makes the notification's id
    /// another one.
    pub replay: u64,
    /// How the attempts so far went; absent when there was none.
    pub trouble: Option<Box<Trouble>>,
}

/// In the place of a replay: a changed filter asked for it. Only a create or a delete is owed; an update would
/// tell the client again what it was told under the filter before.
pub const TRANSITION: u64 = i64::MAX as u64;

/// What a standing is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Owed, and to be tried again at `due`.
    Waiting {
        /// When.
        due: Timestamp,
    },
    /// Handed to a client that pulls: in flight until it is settled, or until this time.
    Leased {
        /// When it ends.
        until: Timestamp,
    },
    /// The policy gave it up: a dead letter. A newer revision or a replay revives it.
    GaveUp,
    /// Nothing is owed, but the client's state is unknown (a discarded notification after a lost answer).
    Doubtful,
    /// The change is settled; whatever of the document came after it may be owed (see `history.rs`).
    Passed,
}

impl Standing {
    /// The first change that may be owed.
    pub fn owed_from(&self) -> Seq {
        match self.state {
            State::Passed => Seq(self.seq.0 + 1),
            _ => self.seq,
        }
    }

    /// When the document is to be looked at again; `None` when nothing is owed.
    pub fn due(&self) -> Option<Timestamp> {
        match self.state {
            State::Waiting { due } => Some(due),
            State::Passed => Some(Timestamp::from_millis(0)),
            State::Leased { .. } | State::GaveUp | State::Doubtful => None,
        }
    }
}

/// How the attempts for one revision of a document went.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// How many there were.
    pub attempts: u32,
    /// When the first began.
    pub first_attempt_at: Timestamp,
    /// When the last began.
    pub last_attempt_at: Timestamp,
    /// What the last one told.
    pub action: Action,
    /// The status of the last answer, if there was one.
    pub status: Option<u16>,
    /// The error of the last attempt, if there was no answer.
    pub error: Option<String>,
    /// The beginning of the last answer's body.
    pub response: Option<String>,
    /// Whether one of them was sent and not answered: the client may have this revision.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unheard: bool,
    /// The revision that the client has, as the origin wrote it, where that was known when they ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has: Option<String>,
    /// While it is on a lease: what there is to know of that beside its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lent: Option<Box<Lent>>,
}

/// What the owner of a feed decided after an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The client has it.
    Delivered,
    /// The client said to drop this notification. It changes nothing about what the client has.
    Discarded {
        /// Whether the client may have processed an earlier request of the same attempt, whose connection broke.
        doubtful: bool,
        /// What to remember, for people.
        story: Option<Box<Trouble>>,
    },
    /// Try again at `due`.
    Retry {
        /// When.
        due: Timestamp,
        /// Whether the client may have processed it all the same (at least one byte was written).
        doubtful: bool,
        /// What to remember.
        trouble: Box<Trouble>,
    },
    /// The policy is at its end.
    GiveUp {
        /// As in `Retry`.
        doubtful: bool,
        /// What to remember.
        trouble: Box<Trouble>,
    },
}
