//! A consumer: what reads messages from a source and feeds them as documents, a resource without HTTP. A draft comes in from a
//! user; a checked consumer goes out, which understands messages.

mod payload;
mod progress;
mod replay;
mod source;
mod stored;

#[cfg(test)]
mod tests;

pub use payload::{
    DeleteSpec, Format, MAX_NAME, Naming, PayloadDraft, Reader, Understood, Unreadable, excerpt_of,
};
pub use progress::{Condition, Counted, Failed, Progress, Unread};
pub use replay::LetterReplay;
pub use source::{ConcurrencyDraft, SourceDraft, SourceType};
pub use stored::{ConsumerView, StoredConsumer};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bridge;
use crate::ids::ResourceId;
use crate::invalid::Invalid;

/// What a user says to create a consumer, and again to replace it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConsumerDraft {
    /// Where its messages come from.
    pub source: SourceDraft,
    /// How they are read.
    #[serde(default)]
    pub payload: PayloadDraft,
}

/// A consumer, checked.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// As the user wrote it, completed with what was left out.
    pub draft: ConsumerDraft,
    /// Where its messages come from, as engines read it.
    pub source: bridge::Source,
    /// How messages are read.
    pub reader: Reader,
}

impl ConsumerDraft {
    /// Checks everything a user can get wrong.
    pub fn check(&self, id: &ResourceId) -> Result<Consumer, Invalid> {
        let (source, completed) = self.source.check(id)?;
        let reader = self.payload.check()?;
        let draft = ConsumerDraft { source: completed, payload: self.payload.clone() };
        Ok(Consumer { draft, source, reader })
    }
}

impl Consumer {
    /// Whether every message is passed on as it is.
    pub fn is_raw(&self) -> bool {
        matches!(self.reader.naming(), Naming::Position)
    }

    /// What it is called where a resource shows its endpoint: the type of its source and where that is, without credentials.
    pub fn label(&self) -> String {
        format!("{} {}", self.source.kind(), self.draft.source.place())
    }
}
