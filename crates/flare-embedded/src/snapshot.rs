//! Snapshots: a connection comes in, and what is read through it until the end is of one moment.

use rusqlite::Connection;

use crate::error::Work;

/// Reads within one snapshot. It begins with the first statement of `read`.
pub(crate) fn snapshot<T>(connection: &Connection, read: impl FnOnce(&Connection) -> Work<T>) -> Work<T> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let read = read(connection);
    // Nothing was written, so there is nothing to keep: this only lets go of the snapshot.
    connection.prepare_cached("ROLLBACK")?.execute([])?;
    read
}
