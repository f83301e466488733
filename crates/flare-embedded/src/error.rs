//! Errors: what SQLite says comes in, what the caller should do goes out.

use std::sync::Arc;

use flare_provider::{ErrorKind, ProviderError};
use rusqlite::{Error, ErrorCode, ffi};

/// Why a job did not do its work. What is refused was refused before anything of it was written.
#[derive(Debug)]
pub(crate) enum WorkError {
    /// This job alone is refused; the others of its transaction go on.
    Refused(ProviderError),
    /// SQLite failed: the transaction is rolled back, with all that is in it.
    Store(Error),
}

impl From<Error> for WorkError {
    fn from(error: Error) -> Self {
        WorkError::Store(error)
    }
}

impl From<ProviderError> for WorkError {
    fn from(error: ProviderError) -> Self {
        WorkError::Refused(error)
    }
}

/// What work inside a transaction answers.
pub(crate) type Work<T> = std::result::Result<T, WorkError>;

/// When SQLite failed: the same error means different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before the commit: a rollback leaves nothing behind.
    Statement,
    /// In the commit or in a checkpoint, where things are synced.
    Sync,
}

/// Why a whole transaction failed, to be told to each of its jobs.
#[derive(Clone, Debug)]
pub(crate) struct TransactionFailure {
    pub kind: ErrorKind,
    /// What the disk has is unknown from now on.
    pub fatal: bool,
    detail: &'static str,
    cause: Option<Arc<Error>>,
}

impl TransactionFailure {
    /// Judges an error of SQLite.
    pub fn of(error: Error, moment: Moment) -> TransactionFailure {
        let (kind, detail) = judge(&error, moment);
        let disk = error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure);
        let fatal = disk && kind == ErrorKind::Internal;
        TransactionFailure { kind, fatal, detail, cause: Some(Arc::new(error)) }
    }

    /// A failure that is not SQLite's.
    pub fn new(kind: ErrorKind, detail: &'static str) -> TransactionFailure {
        TransactionFailure { kind, fatal: false, detail, cause: None }
    }

    /// The database is not where it was: whatever is committed from now on would be gone with the process.
    pub fn lost() -> TransactionFailure {
        let detail = "the database was removed, moved or replaced while Flare ran";
        TransactionFailure { kind: ErrorKind::Internal, fatal: true, detail, cause: None }
    }

    /// The failure as one caller hears of it.
    pub fn told(&self, operation: &'static str) -> ProviderError {
        let error = ProviderError::new(self.kind.clone(), operation, self.detail);
        match &self.cause {
            Some(cause) => error.because(cause.clone()),
            None => error,
        }
    }
}

fn judge(error: &Error, moment: Moment) -> (ErrorKind, &'static str) {
    let Error::SqliteFailure(failure, _) = error else {
        return match error {
            Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..) => (ErrorKind::Corrupt, "a stored value is not of its kind"),
            _ => (ErrorKind::Internal, "the statement does not fit the database"),
        };
    };
    match failure.code {
        ErrorCode::DiskFull => (ErrorKind::Unavailable, "the disk is full"),
        // What fsync left on the disk after it failed once is unknown, and asking again would say it is fine.
        ErrorCode::SystemIoFailure if moment == Moment::Sync || synced(failure) => {
            (ErrorKind::Internal, "the disk failed to sync")
        }
        ErrorCode::SystemIoFailure => (ErrorKind::Unavailable, "the disk failed"),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            (ErrorKind::Corrupt, "the database file is damaged")
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            (ErrorKind::Unavailable, "the database is locked by another program")
        }
        ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            (ErrorKind::Unavailable, "the database file cannot be opened or written")
        }
        ErrorCode::OutOfMemory => (ErrorKind::Unavailable, "there is no memory left"),
        ErrorCode::TooBig => (ErrorKind::Unsupported, "a value is too large for the database"),
        _ => (ErrorKind::Internal, "the database refused a statement"),
    }
}

fn synced(failure: &ffi::Error) -> bool {
    matches!(failure.extended_code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
}

/// The error of a read, outside the writer.
pub(crate) fn reading(operation: &'static str, trouble: WorkError) -> ProviderError {
    match trouble {
        WorkError::Refused(refused) => refused,
        WorkError::Store(error) => TransactionFailure::of(error, Moment::Statement).told(operation),
    }
}

/// Something stored that does not make sense. The detail names it.
pub(crate) fn corrupt(operation: &'static str, detail: impl Into<String>) -> ProviderError {
    ProviderError::new(ErrorKind::Corrupt, operation, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: i32, moment: Moment) -> ErrorKind {
        TransactionFailure::of(Error::SqliteFailure(ffi::Error::new(code), None), moment).kind
    }

    #[test]
    fn a_full_disk_passes_and_a_failed_sync_does_not() {
        assert_eq!(failure(ffi::SQLITE_FULL, Moment::Statement), ErrorKind::Unavailable);
        assert_eq!(failure(ffi::SQLITE_FULL, Moment::Sync), ErrorKind::Unavailable);
        assert_eq!(failure(ffi::SQLITE_IOERR_WRITE, Moment::Statement), ErrorKind::Unavailable);
        assert_eq!(failure(ffi::SQLITE_IOERR_FSYNC, Moment::Statement), ErrorKind::Internal);
        assert_eq!(failure(ffi::SQLITE_IOERR_WRITE, Moment::Sync), ErrorKind::Internal);
    }

    #[test]
    fn what_is_stored_and_makes_no_sense_is_corrupt() {
        assert_eq!(failure(ffi::SQLITE_CORRUPT, Moment::Statement), ErrorKind::Corrupt);
        assert_eq!(failure(ffi::SQLITE_NOTADB, Moment::Statement), ErrorKind::Corrupt);
        let wrong = Error::InvalidColumnType(0, "seq".to_owned(), rusqlite::types::Type::Text);
        assert_eq!(TransactionFailure::of(wrong, Moment::Statement).kind, ErrorKind::Corrupt);
    }
}
