//! Opening feeds: ids and an epoch come in; the epoch is made durable, and only then is read what the feeds have.

use flare_model::feed::{Failure, Saved, Tally};
use flare_model::ids::{FeedId, Seq};
use flare_model::time::Timestamp;
use flare_provider::Opened;
use flare_provider::coding::{bits, filtering, position};
use roaring::RoaringTreemap;
use rusqlite::{Connection, OptionalExtension, Row};

use super::notes;
use super::standings::{self, GAVE_UP};
use super::write::fenced;
use crate::desk::Desk;
use crate::error::{Work, WorkError, corrupt};
use crate::meta;
use crate::place::feed_key;
use crate::snapshot::snapshot;

const OPERATION: &str = "ledger.open";

/// Bound: so many feeds are read in one snapshot. When full: the rest is read in the next. A long snapshot would
/// keep the log from starting over.
pub(crate) const SLICE: usize = 2048;

/// Raises the epoch of all feeds that exist, or of none. All are looked at before the first is written.
pub(crate) fn raise(desk: &mut Desk<'_>, feeds: &[FeedId], epoch: u64) -> Work<()> {
    let mut read =
        desk.connection.prepare_cached("SELECT epoch, length(held_delta) FROM feeds WHERE id = ?1")?;
    let mut older = Vec::new();
    for feed in feeds {
        let Some(key) = feed_key(*feed) else { continue };
        let row =
            read.query_row([key], |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as usize)));
        let Some((present, length)) = row.optional()? else { continue };
        if present > epoch {
            return Err(fenced(OPERATION, *feed).into());
        }
        if present < epoch {
            older.push(key);
        }
        desk.deltas.set(key, length);
    }
    let mut update = desk.connection.prepare_cached("UPDATE feeds SET epoch = ?2 WHERE id = ?1")?;
    for key in older {
        update.execute((key, epoch as i64))?;
    }
    if meta::get(desk.connection, "last_epoch")? as u64 > epoch {
        return Ok(());
    }
    meta::set(desk.connection, "last_epoch", epoch as i64)
}

/// The next epoch.
pub(crate) fn next_epoch(desk: &mut Desk<'_>) -> Work<u64> {
    let next = meta::get(desk.connection, "last_epoch")? + 1;
    meta::set(desk.connection, "last_epoch", next)?;
    Ok(next as u64)
}

/// Reads feeds, in the order in which they are asked for.
pub(crate) fn read(connection: &Connection, feeds: &[FeedId], incarnation: u64) -> Work<Vec<Opened>> {
    snapshot(connection, |connection| find(connection, feeds, incarnation))
}

/// The same within a snapshot.
pub(super) fn find(connection: &Connection, feeds: &[FeedId], incarnation: u64) -> Work<Vec<Opened>> {
    let mut opened = Vec::with_capacity(feeds.len());
    let mut find = connection.prepare_cached(
        "SELECT f.cursor, f.issued, f.ahead, f.sweep, f.delivered, f.discarded, f.failed, f.last_success_at,
         f.failure_at, f.failure_status, f.failure_error, f.incarnation, f.held_delta,
         (SELECT head FROM lanes WHERE id = f.lane), f.life, f.filtering, f.since, f.skipped,
         f.judging, f.unjudged, f.judged, f.health
         FROM feeds f WHERE f.id = ?1",
    )?;
    for feed in feeds {
        let Some(key) = feed_key(*feed) else { continue };
        let mut rows = find.query([key])?;
        let Some(row) = rows.next()? else { continue };
        let head = Seq(row.get::<_, i64>(13)? as u64);
        let saved = saved(connection, row, *feed, key, incarnation)?;
        opened.push(Opened { feed: *feed, saved, head });
    }
    Ok(opened)
}

fn saved(connection: &Connection, row: &Row, feed: FeedId, key: i64, incarnation: u64) -> Work<Saved> {
    let senseless = |what: &str| {
        let detail = format!("{what} of feed {} of lane {} makes no sense", feed.subscription, feed.lane);
        WorkError::Refused(corrupt(OPERATION, detail))
    };
    let bytes = |index| row.get_ref(index)?.as_blob_or_null().map_err(rusqlite::Error::from);
    let cursor = Seq(row.get::<_, i64>(0)? as u64);
    let ahead = position::decode_ahead(cursor, bytes(2)?).ok_or_else(|| senseless("what is ahead"))?;
    let sweep = match bytes(3)? {
        Some(bytes) => Some(position::decode_sweep(bytes).ok_or_else(|| senseless("the sweep"))?),
        None => None,
    };
    let filtering = match bytes(15)? {
        Some(bytes) => Some(filtering::decode(bytes).ok_or_else(|| senseless("what is kept for filters"))?),
        None => None,
    };
    let health = match bytes(21)? {
        Some(bytes) => Some(position::decode_health(bytes).ok_or_else(|| senseless("the health"))?),
        None => None,
    };
    let entries =
        bytes(12)?.and_then(bits::decode).ok_or_else(|| senseless("the list of what the client has"))?;
    let set = |column, what| match bytes(column)? {
        Some(bytes) => bits::read_set(bytes).ok_or_else(|| senseless(what)),
        None => Ok(RoaringTreemap::new()),
    };
    let (dead, dead_in_doubt) = dead(connection, key)?;
    let (noted, untold) = notes::noted(connection, key)?;
    Ok(Saved {
        cursor,
        issued: Seq(row.get::<_, i64>(1)? as u64),
        judging: Seq(row.get::<_, i64>(18)? as u64),
        unjudged: set(19, "what is to be judged")?,
        judged: set(20, "what was judged")?,
        ahead,
        held: held(connection, key, entries)?
            .ok_or_else(|| senseless("the bitmap of what the client has"))?,
        standings: standings::alive(connection, key)?,
        dead,
        dead_in_doubt,
        since: row.get::<_, Option<i64>>(16)?.map(|since| Seq(since as u64)),
        sweep,
        tally: Tally { health: health.map(Box::new), ..tally(row)? },
        life: row.get::<_, i64>(14)? as u64,
        filtering: filtering.map(Box::new),
        noted,
        untold,
        strange: row.get::<_, i64>(11)? as u64 != incarnation,
    })
}

fn tally(row: &Row) -> rusqlite::Result<Tally> {
    let number = |index| row.get::<_, i64>(index).map(|number| number as u64);
    let failed_at: Option<i64> = row.get(8)?;
    let last_failure = match failed_at {
        Some(at) => Some(Box::new(Failure {
            at: Timestamp::from_millis(at),
            status: row.get(9)?,
            error: row.get::<_, Option<String>>(10)?.unwrap_or_default(),
        })),
        None => None,
    };
    Ok(Tally {
        delivered: number(4)?,
        discarded: number(5)?,
        failed: number(6)?,
        skipped: number(17)?,
        last_success_at: row.get::<_, Option<i64>>(7)?.map(Timestamp::from_millis),
        last_failure,
        health: None,
    })
}

/// What the client has; `None` when a bitmap makes no sense.
pub(crate) fn held(
    connection: &Connection,
    key: i64,
    entries: Vec<(u64, bool)>,
) -> Work<Option<RoaringTreemap>> {
    let mut read = connection.prepare_cached("SELECT chunk, bits FROM held WHERE feed = ?1")?;
    let mut rows = read.query([key])?;
    let mut chunks = Vec::new();
    while let Some(row) = rows.next()? {
        let chunk = row.get(0)?;
        let bytes = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        let Some(bits) = bits::read_chunk(chunk, bytes) else { return Ok(None) };
        chunks.push((chunk, bits));
    }
    Ok(Some(bits::join(chunks, entries)))
}

/// The dead letters, and those of them that are in doubt.
fn dead(connection: &Connection, key: i64) -> Work<(RoaringTreemap, RoaringTreemap)> {
    let (mut dead, mut in_doubt) = (RoaringTreemap::new(), RoaringTreemap::new());
    let mut read =
        connection.prepare_cached("SELECT ordinal, doubt FROM standings WHERE feed = ?1 AND state = ?2")?;
    let mut rows = read.query((key, GAVE_UP))?;
    while let Some(row) = rows.next()? {
        let ordinal = row.get::<_, i64>(0)? as u64;
        dead.insert(ordinal);
        if row.get(1)? {
            in_doubt.insert(ordinal);
        }
    }
    Ok((dead, in_doubt))
}
