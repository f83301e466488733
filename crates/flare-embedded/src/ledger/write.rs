//! Records: what a feed settled comes in, and one update of its row goes out; more only where bits are folded or
//! documents need a standing.

use std::collections::HashMap;

use flare_model::feed::Record;
use flare_model::ids::FeedId;
use flare_provider::coding::bits::{self, DELTA_BYTES};
use flare_provider::coding::filtering;
use flare_provider::coding::position::{encode_ahead, encode_health, encode_sweep};
use flare_provider::{Conflict, ErrorKind, FeedWrite, ProviderError, Result};
use roaring::RoaringBitmap;
use rusqlite::{Connection, OptionalExtension, params};

use super::kept;
use super::notes;
use super::standings::Writing;
use crate::desk::Desk;
use crate::error::{Work, corrupt};
use crate::place::feed_key;

const OPERATION: &str = "ledger.write";

/// How long the list behind each feed's row is. Bound: the feeds that were opened, at some 30 bytes each.
#[derive(Debug, Default)]
pub(crate) struct Deltas {
    known: HashMap<i64, usize>,
    /// What the transaction under way makes of them.
    staged: HashMap<i64, usize>,
}

impl Deltas {
    fn get(&self, feed: i64) -> Option<usize> {
        self.staged.get(&feed).or_else(|| self.known.get(&feed)).copied()
    }

    /// The list of a feed has this length, once the transaction is durable.
    pub fn set(&mut self, feed: i64, length: usize) {
        self.staged.insert(feed, length);
    }

    /// The feed is gone. Forgetting it too early costs a look into its row, and nothing else.
    pub fn forget(&mut self, feed: i64) {
        self.known.remove(&feed);
        self.staged.remove(&feed);
    }

    /// The transaction is durable.
    pub fn commit(&mut self) {
        self.known.extend(self.staged.drain());
    }

    /// The transaction is undone.
    pub fn roll_back(&mut self) {
        self.staged.clear();
    }
}

/// Writes records in order; each is refused before anything of it is written, or written whole.
pub(crate) fn write_all(desk: &mut Desk<'_>, writes: Vec<FeedWrite>) -> Work<Vec<Result<()>>> {
    writes.into_iter().map(|write| self::write(desk, write)).collect()
}

fn write(desk: &mut Desk<'_>, write: FeedWrite) -> Work<Result<()>> {
    let FeedWrite { feed, epoch, record } = write;
    let Some(key) = feed_key(feed) else {
        return Ok(Err(ProviderError::conflict(OPERATION, Conflict::Feed)));
    };
    let added = bits::encode(&record.held, &record.dropped);
    let length = match desk.deltas.get(key) {
        Some(length) => length,
        None => {
            let mut length =
                desk.connection.prepare_cached("SELECT length(held_delta) FROM feeds WHERE id = ?1")?;
            length.query_row([key], |row| row.get::<_, i64>(0)).optional()?.unwrap_or(0) as usize
        }
    };
    let folds = !added.is_empty() && length + added.len() > DELTA_BYTES;
    let chunks = match folds {
        true => match folded(desk.connection, key, epoch, &added)? {
            Ok(chunks) => chunks,
            Err(refused) => return Ok(Err(refused)),
        },
        false => Vec::new(),
    };
    let delta = match (folds, added.is_empty()) {
        (true, _) => Delta::Folded,
        (false, true) => Delta::Same,
        (false, false) => Delta::Added(&added),
    };
    if !update(desk, key, epoch, &record, &delta)? {
        return Ok(Err(why_not(desk.connection, feed, key)?));
    }
    match delta {
        Delta::Folded => desk.deltas.set(key, 0),
        Delta::Added(added) => desk.deltas.set(key, length + added.len()),
        Delta::Same => {}
    }
    write_chunks(desk.connection, key, chunks)?;
    if !record.standings.is_empty() || !record.cleared.is_empty() {
        let mut writing = Writing::new(desk.connection)?;
        for ordinal in &record.cleared {
            writing.clear(key, *ordinal)?;
        }
        for standing in &record.standings {
            writing.put(key, standing)?;
        }
    }
    kept::write(desk.connection, key, &record)?;
    notes::write(desk.connection, key, &record)?;
    Ok(Ok(()))
}

/// What happens to the list behind the row.
enum Delta<'a> {
    Same,
    Added(&'a [u8]),
    Folded,
}

macro_rules! update_sql {
    ($delta:literal) => {
        concat!(
            "UPDATE feeds SET incarnation = ?3, cursor = ?4, issued = ?5, delivered = ?6, discarded = ?7, failed = ?8,
             last_success_at = ?9, failure_at = ?10, failure_status = ?11, failure_error = ?12, sweep = ?13,
             ahead = ?14, life = ?15, filtering = ?16, since = ?17, skipped = ?18, judging = ?19,
             unjudged = ?20, judged = ?21, health = ?22",
            $delta,
            " WHERE id = ?1 AND epoch = ?2"
        )
    };
}

/// Updates the row, if it is there and of this epoch.
fn update(desk: &Desk<'_>, key: i64, epoch: u64, record: &Record, delta: &Delta<'_>) -> Work<bool> {
    let mut update = desk.connection.prepare_cached(match delta {
        Delta::Same => update_sql!(""),
        Delta::Added(_) => update_sql!(", held_delta = CAST(held_delta || ?23 AS BLOB)"),
        Delta::Folded => update_sql!(", held_delta = x''"),
    })?;
    let Record { tally, .. } = record;
    let failure = tally.last_failure.as_ref();
    let plain = params![
        key,
        epoch as i64,
        desk.incarnation as i64,
        record.cursor.0 as i64,
        record.issued.0 as i64,
        tally.delivered as i64,
        tally.discarded as i64,
        tally.failed as i64,
        tally.last_success_at.map(|at| at.millis()),
        failure.map(|failure| failure.at.millis()),
        failure.and_then(|failure| failure.status),
        failure.map(|failure| failure.error.as_str()),
        record.sweep.as_ref().map(encode_sweep),
        encode_ahead(record.cursor, &record.ahead),
        record.life as i64,
        record.filtering.as_deref().map(filtering::encode),
        record.since.map(|since| since.0 as i64),
        tally.skipped as i64,
        record.judging.0 as i64,
        (!record.unjudged.is_empty()).then(|| bits::write_set(&record.unjudged)),
        (!record.judged.is_empty()).then(|| bits::write_set(&record.judged)),
        tally.health.as_deref().map(encode_health),
    ];
    for (index, value) in plain.iter().enumerate() {
        update.raw_bind_parameter(index + 1, value)?;
    }
    if let Delta::Added(added) = delta {
        update.raw_bind_parameter(23, added)?;
    }
    Ok(update.raw_execute()? == 1)
}

/// The bitmaps that change when the list and what is added to it are folded. Reads only.
fn folded(
    connection: &Connection,
    key: i64,
    epoch: u64,
    added: &[u8],
) -> Work<Result<Vec<(i64, RoaringBitmap)>>> {
    let mut list = connection.prepare_cached("SELECT held_delta FROM feeds WHERE id = ?1 AND epoch = ?2")?;
    let list = list.query_row((key, epoch as i64), |row| row.get::<_, Vec<u8>>(0)).optional()?;
    // Without a row nothing is folded, and the update finds out why.
    let Some(mut list) = list else { return Ok(Ok(Vec::new())) };
    list.extend_from_slice(added);
    let Some(entries) = bits::decode(&list) else {
        return Ok(Err(corrupt(OPERATION, "the list of what the client has makes no sense")));
    };
    let mut read = connection.prepare_cached("SELECT bits FROM held WHERE feed = ?1 AND chunk = ?2")?;
    let mut changed = Vec::new();
    for (chunk, entries) in bits::by_chunk(entries) {
        let bytes = read.query_row((key, chunk), |row| row.get::<_, Vec<u8>>(0)).optional()?;
        let bits = bytes.map_or_else(|| Some(RoaringBitmap::new()), |bytes| bits::read_chunk(chunk, &bytes));
        let Some(mut bits) = bits else {
            return Ok(Err(corrupt(
                OPERATION,
                format!("bitmap {chunk} of what the client has makes no sense"),
            )));
        };
        bits::change_chunk(&mut bits, &entries);
        changed.push((chunk, bits));
    }
    Ok(Ok(changed))
}

fn write_chunks(connection: &Connection, key: i64, chunks: Vec<(i64, RoaringBitmap)>) -> Work<()> {
    if chunks.is_empty() {
        return Ok(());
    }
    let mut put =
        connection.prepare_cached("INSERT OR REPLACE INTO held (feed, chunk, bits) VALUES (?1, ?2, ?3)")?;
    let mut clear = connection.prepare_cached("DELETE FROM held WHERE feed = ?1 AND chunk = ?2")?;
    for (chunk, bits) in chunks {
        if bits.is_empty() {
            clear.execute((key, chunk))?;
        } else {
            put.execute((key, chunk, bits::write_chunk(bits)))?;
        }
    }
    Ok(())
}

/// Why a row was not updated.
fn why_not(connection: &Connection, feed: FeedId, key: i64) -> Work<ProviderError> {
    let mut there = connection.prepare_cached("SELECT 1 FROM feeds WHERE id = ?1")?;
    Ok(match there.exists([key])? {
        true => fenced(OPERATION, feed),
        false => ProviderError::conflict(OPERATION, Conflict::Feed),
    })
}

/// Someone else owns this feed now.
pub(crate) fn fenced(operation: &'static str, feed: FeedId) -> ProviderError {
    let detail = format!("feed {} of lane {}", feed.subscription, feed.lane);
    ProviderError::new(ErrorKind::Fenced, operation, detail)
}
