//! The decision: whether the client is to have a document, and what it is known to have → what to send, if
//! anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a notification tells a client about a document. Decided per client, at the moment of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The client does not have the document, or may not have it.
    Create,
    /// The client has an older revision, or is told again.
    Update,
    /// The client has the document, or may have it, and it is gone.
    Delete,
}

impl Action {
    /// All of them, in the order of their numbers.
    pub const ALL: [Action; 3] = [Action::Create, Action::Update, Action::Delete];

    /// The word used in headers and bodies.
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Create => "create",
            Action::Update => "update",
            Action::Delete => "delete",
        }
    }

    /// Whether not knowing the outcome leaves the client's state unknown. An update of a document that the
    /// client has leaves it with the document either way.
    pub fn leaves_doubt(self) -> bool {
        self != Action::Update
    }
}

/// The table of architecture: newest state × what the client has. `wanted`: the document is live, and the
/// client is to have it.
pub fn decide(wanted: bool, held: bool, doubt: bool) -> Option<Action> {
    match (wanted, held, doubt) {
        (true, true, false) => Some(Action::Update),
        (true, _, _) => Some(Action::Create),
        (false, false, false) => None,
        (false, _, _) => Some(Action::Delete),
    }
}
