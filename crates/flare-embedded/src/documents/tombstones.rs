//! Removing tombstones: which may go is looked up in a snapshot; then they go in slices of the writer's work, each
//! compared again with what is there by then.

use flare_model::ids::{LaneId, Seq};
use flare_model::time::Timestamp;
use roaring::RoaringTreemap;
use rusqlite::{Connection, OptionalExtension};

use crate::desk::Desk;
use crate::error::Work;
use crate::lanes::{self, Lane};
use crate::place::url_key;
use crate::recent::Change;

/// Bound: so many tombstones are looked for, and removed, at a time. When full: the next slice follows.
pub(crate) const SLICE: usize = 1000;

/// Which tombstones to look for.
pub(crate) struct Search<'a> {
    pub lane: LaneId,
    /// Only beyond this seq.
    pub after: Seq,
    pub upto: Seq,
    pub accepted_before: Timestamp,
    pub keep: &'a RoaringTreemap,
    pub limit: usize,
}

/// A tombstone that may go, as it was when it was looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    id: i64,
    pub seq: i64,
    pub ordinal: u64,
}

/// Up to `limit` tombstones in the order of their seqs, and how far the search came: `None` when to the end.
pub(crate) fn find(connection: &Connection, search: &Search<'_>) -> Work<(Vec<Found>, Option<Seq>)> {
    let Some(lane) = lanes::find(connection, search.lane)? else { return Ok((Vec::new(), None)) };
    let mut tombstones = connection.prepare_cached(
        "SELECT id, seq, ordinal FROM documents INDEXED BY tombstones
         WHERE deleted AND lane = ?1 AND seq > ?2 AND seq <= ?3 AND updated_at < ?4 ORDER BY seq LIMIT ?5",
    )?;
    let signed = |seq: Seq| i64::try_from(seq.0).unwrap_or(i64::MAX);
    let bounds = (
        lane.id,
        signed(search.after),
        signed(search.upto),
        search.accepted_before.millis(),
        // Those to keep count too, so that the search ends even if all are kept.
        (SLICE * 8) as i64,
    );
    let mut rows = tombstones.query(bounds)?;
    let (mut found, mut looked, mut last) = (Vec::new(), 0, search.after);
    while let Some(row) = rows.next()? {
        if found.len() >= search.limit {
            return Ok((found, Some(last)));
        }
        looked += 1;
        last = Seq(row.get::<_, i64>(1)? as u64);
        let ordinal = row.get::<_, i64>(2)? as u64;
        if !search.keep.contains(ordinal) {
            found.push(Found { id: row.get(0)?, seq: row.get(1)?, ordinal });
        }
    }
    let more = (looked == SLICE * 8).then_some(last);
    Ok((found, more))
}

/// Removes those that are still what they were, and answers how many.
pub(crate) fn remove(desk: &mut Desk<'_>, lane_id: LaneId, found: &[Found]) -> Work<u64> {
    let Some(lane) = desk.lanes.get(desk.connection, lane_id)? else { return Ok(0) };
    let mut read = desk.connection.prepare_cached(
        "SELECT ordinal, url FROM documents WHERE id = ?1 AND lane = ?2 AND seq = ?3 AND deleted",
    )?;
    let mut delete = desk.connection.prepare_cached("DELETE FROM documents WHERE id = ?1")?;
    let mut removed = 0;
    for Found { id, seq, .. } in found {
        let there = read.query_row((id, lane.id, seq), |row| {
            Ok((row.get::<_, i64>(0)? as u64, url_key(row.get_ref(1)?.as_str()?)))
        });
        let Some((ordinal, hash)) = there.optional()? else { continue };
        delete.execute([id])?;
        let change = Change::Removed { document: *id, lane: lane.id, ordinal, seq: *seq as u64, hash };
        desk.done.changes.push(change);
        removed += 1;
    }
    desk.lanes.set(lane_id, Lane { tombstones: lane.tombstones - removed, ..lane });
    Ok(removed)
}
