//! Connections: a database file comes in, connections go out that are set up for their part.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Result};

/// Larger pages cost more log for each change of a single row, smaller ones split documents over pages.
pub(crate) const PAGE_BYTES: usize = 4096;

/// How long a statement waits for another program that has the database locked (a user's own tool).
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How many statements of each connection stay compiled: more than there are.
const STATEMENTS: usize = 96;

/// A connection that may write.
pub(crate) fn writing(database: &Path, cache_bytes: usize) -> Result<Connection> {
    to_write(open(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?, cache_bytes)
}

/// Sets a connection up to write; an empty database becomes one with a write-ahead log.
pub(crate) fn to_write(connection: Connection, cache_bytes: usize) -> Result<Connection> {
    // FULL syncs the log with every commit; checkpoints are asked for by `checkpoint.rs` alone.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;",
    )?;
    cached(connection, cache_bytes)
}

/// A connection that only reads.
pub(crate) fn reading(database: &Path, cache_bytes: usize) -> Result<Connection> {
    cached(open(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?, cache_bytes)
}

/// A connection with nothing set up yet but what every one needs.
pub(crate) fn open(database: &Path, flags: OpenFlags) -> Result<Connection> {
    // Every connection belongs to one thread, so SQLite's own locks would be for nothing.
    let connection = Connection::open_with_flags(database, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    // A process that is ended in the middle leaves the log as it is; one that stops cleanly checkpoints itself.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

fn cached(connection: Connection, cache_bytes: usize) -> Result<Connection> {
    let kibibytes = (cache_bytes / 1024).max(256);
    connection.execute_batch(&format!(
        "PRAGMA cache_size = -{kibibytes}; PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF;"
    ))?;
    Ok(connection)
}
