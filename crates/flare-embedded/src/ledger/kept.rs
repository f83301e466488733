//! Rows of `kept`: documents as clients last got them come in with a record, and go out one by one.

use std::sync::Arc;

use bytes::Bytes;
use flare_model::feed::{Kept, Record};
use flare_model::ids::{FeedId, Ordinal};
use flare_model::revision::Revision;
use rusqlite::{Connection, OptionalExtension};

use crate::error::Work;
use crate::place::feed_key;

/// Writes the states of a record, inside its transaction.
pub(crate) fn write(connection: &Connection, feed: i64, record: &Record) -> Work<()> {
    if !record.forgotten.is_empty() {
        let mut forget = connection.prepare_cached("DELETE FROM kept WHERE feed = ?1 AND ordinal = ?2")?;
        for ordinal in &record.forgotten {
            forget.execute((feed, ordinal.0 as i64))?;
        }
    }
    if record.kept.is_empty() {
        return Ok(());
    }
    let mut put = connection.prepare_cached(
        "INSERT INTO kept (feed, ordinal, life, revision, nanos, revision_text, content)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (feed, ordinal) DO UPDATE SET life = excluded.life,
         revision = excluded.revision, nanos = excluded.nanos, revision_text = excluded.revision_text,
         content = excluded.content",
    )?;
    for (ordinal, state) in &record.kept {
        let (revision, nanos, text) = state.revision.to_parts();
        let life = record.life as i64;
        put.execute((feed, ordinal.0 as i64, life, revision, nanos, text, &state.content[..]))?;
    }
    Ok(())
}

/// One state of a feed that exists, if it is of this life.
pub(crate) fn read(connection: &Connection, feed: FeedId, life: u64, ordinal: Ordinal) -> Work<Option<Kept>> {
    let Some(key) = feed_key(feed) else { return Ok(None) };
    let mut one = connection.prepare_cached(
        "SELECT revision, nanos, revision_text, content FROM kept
         WHERE feed = ?1 AND ordinal = ?2 AND life = ?3 AND EXISTS (SELECT 1 FROM feeds WHERE id = ?1)",
    )?;
    let state = one.query_row((key, ordinal.0 as i64, life as i64), |row| {
        let text = row.get_ref(2)?.as_str_or_null()?;
        let revision = Revision::from_parts(row.get(0)?, row.get(1)?, text);
        Ok(Kept { revision, content: Bytes::copy_from_slice(row.get_ref(3)?.as_blob()?) })
    });
    Ok(state.optional()?)
}

/// What the states of a record take of a commit, about.
pub(crate) fn bytes(record: &Record) -> usize {
    let state = |(_, state): &(Ordinal, Arc<Kept>)| state.content.len() + 128;
    record.kept.iter().map(state).sum::<usize>() + record.forgotten.len() * 64
}
