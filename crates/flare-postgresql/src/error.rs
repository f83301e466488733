//! Errors: what the server or the way to it said comes in; what the caller should do goes out.

use flare_provider::{ErrorKind, ProviderError};
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Why some work was not done.
#[derive(Debug)]
pub(crate) enum WorkError {
    /// It was looked at, and refused.
    Refused(ProviderError),
    /// The server, or the way to it.
    Server(tokio_postgres::Error),
}

/// What some work gives.
pub(crate) type Work<T> = Result<T, WorkError>;

impl From<tokio_postgres::Error> for WorkError {
    fn from(error: tokio_postgres::Error) -> Self {
        WorkError::Server(error)
    }
}

impl From<ProviderError> for WorkError {
    fn from(error: ProviderError) -> Self {
        WorkError::Refused(error)
    }
}

impl WorkError {
    /// As the caller hears it, of something that was not committed.
    pub fn told(self, operation: &'static str) -> ProviderError {
        match self {
            WorkError::Refused(refused) => refused,
            WorkError::Server(error) => told(operation, error),
        }
    }
}

/// What the server said of something that was not committed.
pub(crate) fn told(operation: &'static str, error: tokio_postgres::Error) -> ProviderError {
    let kind = kind(&error);
    let detail = match error.as_db_error() {
        Some(said) => format!("PostgreSQL says: {}", said.message()),
        None => "no answer from PostgreSQL".to_owned(),
    };
    ProviderError::new(kind, operation, detail).because(error)
}

/// What to do about it. Whatever the server may be cured of is waited for: a restart, a full disk, too many connections,
/// two that waited for each other, a standby that is not promoted yet.
fn kind(error: &tokio_postgres::Error) -> ErrorKind {
    let Some(state) = error.code() else {
        // Encoding what we ask, or decoding what is answered, is our own fault; everything else is the way there.
        let fault = error.to_string();
        let ours = fault.starts_with("error serializing") || fault.starts_with("error deserializing");
        return if ours { ErrorKind::Internal } else { ErrorKind::Unavailable };
    };
    match &state.code()[..2] {
        "XX" if *state != SqlState::INTERNAL_ERROR => ErrorKind::Corrupt,
        // Connection, authorization, transaction rolled back, resources, object not ready, operator, system error.
        "08" | "28" | "40" | "53" | "55" | "57" | "58" => ErrorKind::Unavailable,
        _ if *state == SqlState::READ_ONLY_SQL_TRANSACTION => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    }
}

/// Whether a statement that was asked to commit may be done although it failed: the answer did not come, or the server said it
/// as it hung up.
pub(crate) fn may_be_done(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_none_or(ends_the_session)
}

/// Whether the server said it as it hung up: then it may stand for any of the statements under way.
pub(crate) fn ends_the_session(said: &DbError) -> bool {
    matches!(said.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

/// What is stored does not make sense.
pub(crate) fn corrupt(operation: &'static str, detail: impl Into<String>) -> ProviderError {
    ProviderError::new(ErrorKind::Corrupt, operation, detail)
}

/// It may be written, or may not.
pub(crate) fn unknown(operation: &'static str) -> ProviderError {
    let detail = "the answer of PostgreSQL was lost: it may be written, or may not";
    ProviderError::new(ErrorKind::Unknown, operation, detail)
}

/// The engine has stopped.
pub(crate) fn closed(operation: &'static str) -> ProviderError {
    ProviderError::new(ErrorKind::Unavailable, operation, "the store is closed")
}
