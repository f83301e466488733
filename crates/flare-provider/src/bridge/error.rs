//! Errors of bridges. The kind says what follows for the consumer or the producer; the rest is for people.

use std::fmt;

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BridgeErrorKind {
    /// What was asked for does not exist (any more): the consumer is `disabled`, and says so.
    Missing,
    /// Credentials or settings are refused: likewise, until somebody changes something.
    Refused,
    /// Nobody answers, or not now: the consumer is `failing`, and it is tried again.
    Unavailable,
    /// The stream is no longer what it was (its connection broke, its lease ended): receipts of it are void, open it anew.
    Broken,
    /// The position is one that the source has forgotten: begin at what it still has, and say what was lost.
    Forgotten,
}

/// An error of a bridge.
#[derive(Debug)]
pub struct BridgeError {
    /// What follows.
    pub kind: BridgeErrorKind,
    /// What happened, for people; no credentials in it.
    pub detail: String,
    /// The cause.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result of a bridge's method.
pub type BridgeResult<T> = std::result::Result<T, BridgeError>;

impl BridgeError {
    /// An error without a cause below it.
    pub fn new(kind: BridgeErrorKind, detail: impl Into<String>) -> BridgeError {
        BridgeError { kind, detail: detail.into(), source: None }
    }

    /// The same with its cause.
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> BridgeError {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for BridgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for BridgeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
