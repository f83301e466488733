//! Single numbers that the schema keeps by name.

use crate::connect::Session;
use crate::documents::row::number;
use crate::error::Work;

/// A number that the first migration has put there.
pub(crate) async fn get(session: &Session, name: &str) -> Work<u64> {
    let get = session.prepare("SELECT value FROM numbers WHERE name = $1").await?;
    number(&session.client.query_one(&get, &[&name]).await?, 0)
}

/// Replaces it.
pub(crate) async fn set(session: &Session, name: &str, value: u64) -> Work<()> {
    let set = session.prepare("UPDATE numbers SET value = $2 WHERE name = $1").await?;
    session.client.execute(&set, &[&name, &(value as i64)]).await?;
    Ok(())
}

/// The next one of a count, which is then taken. The row stays locked until the transaction ends, so that counts are
/// given out in the order of commits.
pub(crate) async fn next(session: &Session, name: &str) -> Work<u64> {
    let next =
        session.prepare("UPDATE numbers SET value = value + 1 WHERE name = $1 RETURNING value").await?;
    number(&session.client.query_one(&next, &[&name]).await?, 0)
}

/// Locks a number: who changes the catalog holds that of the catalog, after the lanes that it needs.
pub(crate) async fn lock(session: &Session, name: &str) -> Work<u64> {
    let lock = session.prepare("SELECT value FROM numbers WHERE name = $1 FOR NO KEY UPDATE").await?;
    number(&session.client.query_one(&lock, &[&name]).await?, 0)
}
