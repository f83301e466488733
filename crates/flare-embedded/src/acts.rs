//! What was done: acts come in and are written as other work of the catalog; readers answer the rest.

use async_trait::async_trait;
use flare_model::time::Timestamp;
use flare_provider::Result;
use flare_provider::acts::{Act, Acts, ActsPage, ListActs};
use rusqlite::Connection;

use crate::engine::Engine;
use crate::error::Work;

/// What an act takes of a commit beside its texts, about.
const ACT_BYTES: usize = 256;

#[async_trait]
impl Acts for Engine {
    async fn append(&self, act: Act) -> Result<()> {
        let bytes = ACT_BYTES + act.body.len();
        let append = move |desk: &mut crate::desk::Desk<'_>| -> Work<()> {
            let mut append =
                desk.connection.prepare_cached("INSERT INTO acts (at, account, body) VALUES (?1, ?2, ?3)")?;
            append.execute((act.at.millis(), &act.account, &act.body))?;
            Ok(())
        };
        self.queue.work("acts.append", bytes, append).await
    }

    async fn list(&self, wanted: ListActs) -> Result<ActsPage> {
        self.read("acts.list", move |reader| list(&reader.connection, &wanted)).await
    }

    async fn trim(&self, before: Timestamp, limit: usize) -> Result<u64> {
        let trim = move |desk: &mut crate::desk::Desk<'_>| -> Work<u64> {
            let mut trim = desk.connection.prepare_cached(
                "DELETE FROM acts WHERE number IN (SELECT number FROM acts WHERE number < coalesce(
                     (SELECT number FROM acts WHERE at >= ?1 ORDER BY number LIMIT 1), 9223372036854775807)
                 ORDER BY number LIMIT ?2)",
            )?;
            Ok(trim.execute((before.millis(), i64::try_from(limit).unwrap_or(i64::MAX)))? as u64)
        };
        self.queue.work("acts.trim", ACT_BYTES, trim).await
    }
}

/// One statement is one snapshot: the total stands beside every row, and alone where the page is empty.
fn list(connection: &Connection, wanted: &ListActs) -> Work<ActsPage> {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let since = wanted.since.map_or(i64::MIN, Timestamp::millis);
    let mut list = connection.prepare_cached(
        "WITH fitting AS (SELECT number, at, account, body FROM acts
                          WHERE (?1 IS NULL OR account = ?1) AND at >= ?2)
         SELECT (SELECT count(*) FROM fitting), at, account, body
         FROM (SELECT 1) LEFT JOIN (SELECT * FROM fitting ORDER BY number DESC LIMIT ?3 OFFSET ?4)
         ORDER BY number DESC",
    )?;
    let mut rows = list.query((&wanted.account, since, number(wanted.limit), number(wanted.offset)))?;
    let mut page = ActsPage::default();
    while let Some(row) = rows.next()? {
        page.total = row.get::<_, i64>(0)? as u64;
        if let Some(at) = row.get::<_, Option<i64>>(1)? {
            page.acts.push(Act { at: Timestamp::from_millis(at), account: row.get(2)?, body: row.get(3)? });
        }
    }
    Ok(page)
}
