//! Older revisions: what a commit replaces comes in and is kept; it goes out in order of change, or one by one for a
//! document, together with the newest ones.
//!
//! What is newest is read first, and the older ones then, in a later snapshot. Whatever was replaced in between is
//! found twice, and nothing is found nowhere.

use std::sync::Arc;

use bytes::Bytes;
use flare_model::document::{Document, Row};
use flare_model::ids::{LaneId, Ordinal, Seq};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use flare_provider::{OlderRevision, Page, ScanLane};
use rusqlite::{Connection, OptionalExtension};

use crate::desk::Desk;
use crate::error::Work;
use crate::lanes::{self, Lane};
use crate::place::{LAST, number, place};

/// The columns of [`read`], in order.
const COLUMNS: &str =
    "place, document, born, before, deleted, revision, nanos, revision_text, updated_at, url, content";

/// Keeps what a document is now, before the change at `until` replaces it: part of the commit of that change.
pub(super) fn keep(connection: &Connection, id: i64, until: Seq, at: Timestamp) -> Work<()> {
    let mut keep = connection.prepare_cached(
        "INSERT INTO history (place, document, born, before, deleted, revision, nanos, revision_text, updated_at,
         until, replaced_at, url, content)
         SELECT lane << 40 | seq, lane << 40 | ordinal, born, before, deleted, revision, nanos, revision_text,
         updated_at, ?2, ?3, url, content FROM documents WHERE id = ?1",
    )?;
    keep.execute((id, until.0 as i64, at.millis()))?;
    Ok(())
}

/// A page of the newest, and with it the older ones that were replaced beyond `since`.
pub(super) fn merge(connection: &Connection, scan: ScanLane, since: Seq, mut page: Page) -> Work<Page> {
    let Some(lane) = lanes::find(connection, scan.lane)? else { return Ok(page) };
    let mut older = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM history WHERE place > ?1 AND place <= ?2 AND until > ?3 ORDER BY place"
    ))?;
    let bounds = (place(lane.id, scan.after.0), place(lane.id, page.upto.0), signed(since));
    let mut rows = older.query(bounds)?;
    let mut newest = std::mem::take(&mut page.documents).into_iter().peekable();
    let mut bytes = 0;
    let mut take = |document: Document| {
        if page.documents.len() >= scan.rows || bytes >= scan.bytes && !page.documents.is_empty() {
            page.upto = page.documents.last().map_or(scan.after, |last| last.row.seq);
            return false;
        }
        bytes += document.content.len();
        page.documents.push(document);
        true
    };
    while let Some(row) = rows.next()? {
        let seq = Seq(number(row.get(0)?));
        while let Some(before) = newest.next_if(|document| document.row.seq < seq) {
            if !take(before) {
                return Ok(page);
            }
        }
        // Replaced between the two snapshots.
        newest.next_if(|document| document.row.seq == seq);
        if !take(read(row, scan.lane)?) {
            return Ok(page);
        }
    }
    for document in newest {
        if !take(document) {
            break;
        }
    }
    Ok(page)
}

/// The first revision of each document at or beyond a seq, of those replaced beyond `since` and the newest.
pub(super) fn next(
    connection: &Connection,
    id: LaneId,
    since: Seq,
    wanted: &[(Ordinal, Seq)],
    newest: Vec<Option<Document>>,
) -> Work<Vec<Option<Document>>> {
    let Some(lane) = lanes::find(connection, id)? else { return Ok(vec![None; wanted.len()]) };
    let mut first = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM history WHERE place = (SELECT place FROM history INDEXED BY history_by_document
         WHERE document = ?1 AND place >= ?2 AND until > ?3 ORDER BY place LIMIT 1)"
    ))?;
    let mut found = Vec::with_capacity(wanted.len());
    for ((ordinal, from), newest) in wanted.iter().zip(newest) {
        let key = (place(lane.id, ordinal.0), place(lane.id, from.0), signed(since));
        let older = first.query_row(key, |row| read(row, id)).optional()?;
        found.push(older.or(newest.filter(|newest| newest.row.seq >= *from)));
    }
    Ok(found)
}

/// What is kept, by ordinal and seq.
pub(super) fn list(
    connection: &Connection,
    id: LaneId,
    after: Option<(Ordinal, Seq)>,
    limit: usize,
) -> Work<Vec<OlderRevision>> {
    let Some(lane) = lanes::find(connection, id)? else { return Ok(Vec::new()) };
    let mut list = connection.prepare_cached(
        "SELECT document, place, until, replaced_at FROM history INDEXED BY history_by_document
         WHERE (document, place) > (?1, ?2) AND document <= ?3 ORDER BY document, place LIMIT ?4",
    )?;
    let (ordinal, seq) = after
        .map_or((place(lane.id, 0), 0), |(ordinal, seq)| (place(lane.id, ordinal.0), place(lane.id, seq.0)));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = list.query_map((ordinal, seq, place(lane.id, LAST), limit), |row| {
        Ok(OlderRevision {
            ordinal: Ordinal(number(row.get(0)?)),
            seq: Seq(number(row.get(1)?)),
            until: Seq(row.get::<_, i64>(2)? as u64),
            replaced_at: Timestamp::from_millis(row.get(3)?),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Removes revisions, and answers how many were there.
pub(super) fn remove(desk: &mut Desk<'_>, id: LaneId, revisions: &[(Ordinal, Seq)]) -> Work<u64> {
    let Some(lane) = desk.lanes.get(desk.connection, id)? else { return Ok(0) };
    let mut delete =
        desk.connection.prepare_cached("DELETE FROM history WHERE place = ?1 AND document = ?2")?;
    let mut removed = 0;
    for (ordinal, seq) in revisions {
        removed += delete.execute((place(lane.id, seq.0), place(lane.id, ordinal.0)))? as u64;
    }
    desk.lanes.set(id, Lane { revisions: lane.revisions - removed, ..lane });
    desk.done.freed |= removed > 0 && is_mostly_free(desk.connection)?;
    Ok(removed)
}

/// Whether so many pages are free that they are better given back than kept for what comes.
fn is_mostly_free(connection: &Connection) -> rusqlite::Result<bool> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    Ok(number("PRAGMA freelist_count")? > number("PRAGMA page_count")? / 4)
}

fn read(row: &rusqlite::Row, lane: LaneId) -> rusqlite::Result<Document> {
    let plain = |index| row.get::<_, i64>(index).map(|number| number as u64);
    let text = row.get_ref(7)?.as_str_or_null()?;
    Ok(Document {
        lane,
        row: Row {
            ordinal: Ordinal(number(row.get(1)?)),
            seq: Seq(number(row.get(0)?)),
            born: Seq(plain(2)?),
            before: Seq(plain(3)?),
            deleted: row.get::<_, i64>(4)? != 0,
        },
        url: Arc::from(row.get_ref(9)?.as_str()?),
        revision: Revision::from_parts(row.get(5)?, row.get(6)?, text),
        updated_at: Timestamp::from_millis(row.get(8)?),
        content: Bytes::copy_from_slice(row.get_ref(10)?.as_blob()?),
    })
}

fn signed(seq: Seq) -> i64 {
    i64::try_from(seq.0).unwrap_or(i64::MAX)
}
