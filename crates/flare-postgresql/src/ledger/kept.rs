//! Rows of `kept`: documents as clients last got them come in with a record, and go out one by one.

use bytes::Bytes;
use flare_model::feed::{Kept, Record};
use flare_model::ids::{FeedId, Ordinal};
use flare_model::revision::Revision;

use crate::connect::Session;
use crate::error::Work;

/// States by column.
#[derive(Default)]
pub(crate) struct Columns<'r> {
    feed: Vec<i64>,
    ordinal: Vec<i64>,
    life: Vec<i64>,
    revision: Vec<i64>,
    nanos: Vec<i32>,
    revision_text: Vec<Option<&'r str>>,
    content: Vec<&'r [u8]>,
}

impl<'r> Columns<'r> {
    pub fn push(&mut self, feed: i64, record: &'r Record) {
        for (ordinal, state) in &record.kept {
            let (revision, nanos, text) = state.revision.to_parts();
            self.feed.push(feed);
            self.ordinal.push(ordinal.0 as i64);
            self.life.push(record.life as i64);
            self.revision.push(revision);
            self.nanos.push(nanos as i32);
            self.revision_text.push(text);
            self.content.push(&state.content);
        }
    }

    /// Writes them, within a transaction.
    pub async fn write(&self, session: &Session) -> Work<()> {
        if self.feed.is_empty() {
            return Ok(());
        }
        let put = session
            .prepare(
                "INSERT INTO kept (feed, ordinal, life, revision, nanos, revision_text, content)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::integer[],
                 $6::text[], $7::bytea[])
                 ON CONFLICT (feed, ordinal) DO UPDATE SET life = excluded.life, revision = excluded.revision,
                 nanos = excluded.nanos, revision_text = excluded.revision_text, content = excluded.content",
            )
            .await?;
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 7] = [
            &self.feed,
            &self.ordinal,
            &self.life,
            &self.revision,
            &self.nanos,
            &self.revision_text,
            &self.content,
        ];
        session.client.execute(&put, &values).await?;
        Ok(())
    }
}

/// One state of a feed that exists, if it is of this life.
pub(crate) async fn read(session: &Session, feed: FeedId, life: u64, ordinal: Ordinal) -> Work<Option<Kept>> {
    let one = session
        .prepare(
            "SELECT revision, nanos, revision_text, content FROM kept
             WHERE feed = $1 AND ordinal = $2 AND life = $3 AND EXISTS (SELECT 1 FROM feeds WHERE id = $1)",
        )
        .await?;
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
        [&(feed.packed() as i64), &(ordinal.0 as i64), &(life as i64)];
    let Some(row) = session.client.query_opt(&one, &values).await? else { return Ok(None) };
    let nanos = row.try_get::<_, i32>(1)? as u32;
    let revision = Revision::from_parts(row.try_get(0)?, nanos, row.try_get(2)?);
    Ok(Some(Kept { revision, content: Bytes::copy_from_slice(row.try_get(3)?) }))
}
