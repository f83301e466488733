//! Errors of engines. The kind says what the caller should do; the source says why, for the log.

use std::fmt;

/// What went wrong, in terms of what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The state is not what the caller believed: reload and decide again, or tell the user.
    Conflict(Conflict),
    /// The writer's epoch is old: someone else owns this now. Stop, write nothing.
    Fenced,
    /// Not now (a full disk, a lost connection, too much waiting): nothing was written, try later.
    Unavailable,
    /// The answer was lost on the way: it may be written, or be written a little later, or may not. Whoever repeats it
    /// looks first, unless doing it twice is the same as once, as it is for documents and records.
    Unknown,
    /// This engine cannot do that.
    Unsupported,
    /// What is stored does not make sense, or was written by a newer Flare. Stop.
    Corrupt,
    /// A bug, or a failure after which the state on disk is unknown (a failed fsync). Stop.
    Internal,
}

/// What is not as the caller believed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Conflict {
    /// The entity with this id has the id, or one of the keys.
    #[error("{0} has the same id or key")]
    Taken(String),
    /// The parent does not exist.
    #[error("the parent does not exist")]
    Parent,
    /// The entity was changed: its version is another one.
    #[error("the version is another one")]
    Version,
    /// The resource has subscriptions.
    #[error("there are subscriptions")]
    Children,
    /// The new resource would take the live document with this url from another one.
    #[error("{0} would be captured")]
    Captured(String),
    /// More documents than a commit looks at were written since those that were seen.
    #[error("too many documents were not seen")]
    Unseen,
    /// What was routed may be another resource's by now: an older catalog routed it.
    #[error("the catalog that routed it is too old")]
    Routing,
    /// The document's revisions are of another kind: integers, or dates.
    #[error("the revision is of another kind than the document's")]
    RevisionKind,
    /// The lane does not exist, or not any more.
    #[error("the lane does not exist")]
    Lane,
    /// The feed does not exist, or not any more.
    #[error("the feed does not exist")]
    Feed,
}

/// An engine's error.
#[derive(Debug)]
pub struct ProviderError {
    /// What to do.
    pub kind: ErrorKind,
    /// Which operation, as `contract.method`.
    pub operation: &'static str,
    /// For the log.
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

    /// The state is not what the caller believed.
    pub fn conflict(operation: &'static str, conflict: Conflict) -> Self {
        let detail = conflict.to_string();
        Self::new(ErrorKind::Conflict(conflict), operation, detail)
    }

    /// Whether it is this conflict.
    pub fn is(&self, conflict: &Conflict) -> bool {
        matches!(&self.kind, ErrorKind::Conflict(mine) if mine == conflict)
    }

    /// Whether the store could not do it now, or could not say that it did: neither is a reason to stop.
    pub fn is_passing(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::Unknown)
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
