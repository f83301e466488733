//! What belonged to deleted entities: removed in slices, so that no transaction is long. Any process may do it, and two at
//! once take different ones.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::error::Work;
use crate::pool::{Begin, Pool};

/// Bound: so many rows go in one transaction. When full: the next slice follows.
const SLICE: i64 = 2000;

/// After a failure it is tried again so late.
const LATER: Duration = Duration::from_secs(5);

/// Until the engine is closed: whenever it is told to look, and once in the beginning.
pub(crate) async fn run(pool: Arc<Pool>, bell: Arc<Notify>) {
    loop {
        loop {
            match slice(&pool).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    let error = error.told("postgresql.leavings");
                    tracing::debug!(error = %error, "what deleted entities left is removed later");
                    tokio::time::sleep(LATER).await;
                }
            }
        }
        bell.notified().await;
    }
}

/// Removes a slice; false when there is nothing left.
async fn slice(pool: &Arc<Pool>) -> Work<bool> {
    let mut session = pool.get().await?;
    session.begin(Begin::Write).await?;
    let find = "SELECT kind, key FROM leavings LIMIT 1 FOR UPDATE SKIP LOCKED";
    let Some(row) = session.client.query_opt(find, &[]).await? else {
        session.roll_back().await;
        return Ok(false);
    };
    let (kind, key): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
    let tables: &[&str] = match kind.as_str() {
        "lane" => &["documents", "history"],
        _ => &["held", "standings", "notes", "kept"],
    };
    let column = if kind == "lane" { "lane" } else { "feed" };
    let mut left = SLICE;
    for table in tables {
        // Where a table is in partitions, each has the same places: only the lane or feed says which is meant.
        let delete = format!(
            "DELETE FROM {table} WHERE {column} = $1
             AND ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE {column} = $1 LIMIT $2))"
        );
        left -= session.client.execute(&delete, &[&key, &left]).await? as i64;
    }
    if left > 0 {
        session.client.execute("DELETE FROM leavings WHERE kind = $1 AND key = $2", &[&kind, &key]).await?;
    }
    session.commit("postgresql.leavings").await?;
    Ok(true)
}
