//! Single numbers that the database keeps by name.

use rusqlite::{Connection, OptionalExtension as _};

use crate::error::Work;

/// A number that the first migration has put there.
pub(crate) fn get(connection: &Connection, name: &str) -> Work<i64> {
    let mut get = connection.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
    Ok(get.query_row([name], |row| row.get(0))?)
}

/// A number that may not be there.
pub(crate) fn find(connection: &Connection, name: &str) -> Work<Option<i64>> {
    let mut get = connection.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
    Ok(get.query_row([name], |row| row.get(0)).optional()?)
}

/// Replaces it.
pub(crate) fn set(connection: &Connection, name: &str, value: i64) -> Work<()> {
    connection.prepare_cached("UPDATE meta SET value = ?2 WHERE name = ?1")?.execute((name, value))?;
    Ok(())
}

/// The next one of a count, which is then taken.
pub(crate) fn next(connection: &Connection, name: &str) -> Work<i64> {
    let next = get(connection, name)? + 1;
    set(connection, name, next)?;
    Ok(next)
}
