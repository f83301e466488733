//! Errors of engines. The kind says what the caller should do; the source says why, for the log.

use std::fmt;

/// What went wrong, in terms of what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The state is not what the caller believed: reload and decide again, or tell the user.
    Conflict,
    /// The writer's epoch is old: someone else owns this now. Stop, write nothing.
    Fenced,
    /// Not now (a full disk, a lost connection, too much waiting): nothing was written, try later.
    Unavailable,
    /// This engine cannot do that.
    Unsupported,
    /// What is stored does not make sense, or was written by a newer Flare. Stop.
    Corrupt,
    /// A bug, or a failure after which the state on disk is unknown (a failed fsync). Stop.
    Internal,
}

/// An engine's error.
#[derive(Debug)]
pub struct ProviderError {
    /// What to do.
    pub kind: ErrorKind,
    /// Which operation, as `contract.method`.
    pub operation: &'static str,
    /// Safe to show to a user of the API where the kind is `Conflict`; for the log otherwise.
    pub detail: String,
    /// The cause.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result of an engine's method.
pub type Result<T> = std::result::Result<T, ProviderError>;

impl ProviderError {
    /// An error without a cause below it.
    pub fn new(kind: ErrorKind, operation: &'static str, detail: impl Into<String>) -> Self {
        Self { kind, operation, detail: detail.into(), source: None }
    }

    /// The same with its cause.
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.detail)
    }
}

impl std::error::Error for ProviderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
