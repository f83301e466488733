//! Rows of `notes`: why clients lack what nobody owes them comes in with a record, and goes out one by one.

use flare_model::feed::{Left, Note, Record};
use flare_model::ids::{FeedId, Ordinal, Seq};
use roaring::RoaringTreemap;
use rusqlite::Connection;

use crate::error::{Work, WorkError, corrupt};
use crate::place::feed_key;

const ALL: [Left; 7] = [
    Left::Discarded,
    Left::Dropped,
    Left::HeldBack,
    Left::Unclear,
    Left::Asked,
    Left::LeaveDiscarded,
    Left::LeaveDropped,
];

/// How it is stored.
fn number(left: Left) -> i64 {
    match left {
        Left::Discarded => 0,
        Left::Dropped => 1,
        Left::HeldBack => 2,
        Left::Unclear => 3,
        Left::Asked => 4,
        Left::LeaveDiscarded => 5,
        Left::LeaveDropped => 6,
    }
}

fn left(stored: i64) -> Option<Left> {
    ALL.into_iter().find(|left| number(*left) == stored)
}

/// Writes the notes of a record, inside its transaction.
pub(crate) fn write(connection: &Connection, feed: i64, record: &Record) -> Work<()> {
    if !record.unnoted.is_empty() {
        let mut clear = connection.prepare_cached("DELETE FROM notes WHERE feed = ?1 AND ordinal = ?2")?;
        for ordinal in &record.unnoted {
            clear.execute((feed, ordinal.0 as i64))?;
        }
    }
    if record.notes.is_empty() {
        return Ok(());
    }
    let mut put = connection.prepare_cached(
        "INSERT OR REPLACE INTO notes (feed, ordinal, seq, kind, story) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for Note { ordinal, seq, left, story } in &record.notes {
        let story = story.as_deref().map(|story| {
            serde_json::to_string(story).expect("numbers, texts and dates can always be written")
        });
        put.execute((feed, ordinal.0 as i64, seq.0 as i64, number(*left), story))?;
    }
    Ok(())
}

/// One note of a feed that exists.
pub(crate) fn read(connection: &Connection, feed: FeedId, ordinal: Ordinal) -> Work<Option<Note>> {
    let Some(key) = feed_key(feed) else { return Ok(None) };
    let mut one = connection.prepare_cached(
        "SELECT seq, kind, story FROM notes
         WHERE feed = ?1 AND ordinal = ?2 AND EXISTS (SELECT 1 FROM feeds WHERE id = ?1)",
    )?;
    let mut rows = one.query((key, ordinal.0 as i64))?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let senseless = || WorkError::Refused(corrupt("ledger.note", format!("the note of document {ordinal}")));
    let story = match row.get_ref(2)?.as_str_or_null().map_err(rusqlite::Error::from)? {
        Some(text) => Some(serde_json::from_str(text).map_err(|_| senseless())?),
        None => None,
    };
    let left = left(row.get(1)?).ok_or_else(senseless)?;
    Ok(Some(Note { ordinal, seq: Seq(row.get::<_, i64>(0)? as u64), left, story }))
}

/// The documents of a feed that have one, and those of them that do not lag.
pub(crate) fn noted(connection: &Connection, feed: i64) -> Work<(RoaringTreemap, RoaringTreemap)> {
    let (mut noted, mut untold) = (RoaringTreemap::new(), RoaringTreemap::new());
    let mut read = connection
        .prepare_cached("SELECT ordinal, kind FROM notes INDEXED BY notes_by_kind WHERE feed = ?1")?;
    let mut rows = read.query([feed])?;
    while let Some(row) = rows.next()? {
        let ordinal = row.get::<_, i64>(0)? as u64;
        noted.insert(ordinal);
        if left(row.get(1)?).is_some_and(|left| !left.lags()) {
            untold.insert(ordinal);
        }
    }
    Ok((noted, untold))
}
