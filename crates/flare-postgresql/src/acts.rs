//! What was done: acts come in, each a transaction of its own; the newest go out first.

use std::sync::Arc;

use async_trait::async_trait;
use flare_model::time::Timestamp;
use flare_provider::Result;
use flare_provider::acts::{Act, Acts, ActsPage, ListActs};

use crate::engine::Engine;
use crate::error::Work;
use crate::pool::Borrowed;

#[async_trait]
impl Acts for Engine {
    async fn append(&self, act: Act) -> Result<()> {
        self.change("acts.append", move |session| {
            Box::pin(async move {
                let append =
                    session.prepare("INSERT INTO acts (at, account, body) VALUES ($1, $2, $3)").await?;
                session.client.execute(&append, &[&act.at.millis(), &act.account, &act.body]).await?;
                Ok(())
            })
        })
        .await
    }

    async fn list(&self, wanted: ListActs) -> Result<ActsPage> {
        self.read("acts.list", move |session| list(session, wanted)).await
    }

    async fn trim(&self, before: Timestamp, limit: usize) -> Result<u64> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.change("acts.trim", move |session| {
            Box::pin(async move {
                let trim = session
                    .prepare(
                        "DELETE FROM acts WHERE number IN (SELECT number FROM acts WHERE number < coalesce(
                             (SELECT number FROM acts WHERE at >= $1 ORDER BY number LIMIT 1), 9223372036854775807)
                         ORDER BY number LIMIT $2)",
                    )
                    .await?;
                Ok(session.client.execute(&trim, &[&before.millis(), &limit]).await?)
            })
        })
        .await
    }
}

/// One statement is one snapshot: the total stands beside every row, and alone where the page is empty.
async fn list(session: Arc<Borrowed>, wanted: ListActs) -> Work<ActsPage> {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let since = wanted.since.map_or(i64::MIN, Timestamp::millis);
    let list = session
        .prepare(
            "WITH fitting AS (SELECT number, at, account, body FROM acts
                              WHERE ($1::text IS NULL OR account = $1) AND at >= $2)
             SELECT (SELECT count(*) FROM fitting), p.at, p.account, p.body
             FROM (SELECT 1) one LEFT JOIN
             (SELECT * FROM fitting ORDER BY number DESC LIMIT $3 OFFSET $4) p ON true
             ORDER BY p.number DESC",
        )
        .await?;
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&wanted.account, &since, &number(wanted.limit), &number(wanted.offset)];
    let mut page = ActsPage::default();
    for row in session.client.query(&list, &values).await? {
        page.total = row.try_get::<_, i64>(0)? as u64;
        if let Some(at) = row.try_get::<_, Option<i64>>(1)? {
            let at = Timestamp::from_millis(at);
            page.acts.push(Act { at, account: row.try_get(2)?, body: row.try_get(3)? });
        }
    }
    Ok(page)
}
