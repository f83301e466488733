//! Records: what feeds settled comes in; one update of their rows goes out, which is the fence at the same time. More only
//! where documents need a standing, a note or a state, or where bits are folded.

use std::collections::{BTreeMap, HashMap, HashSet};

use flare_model::feed::Record;
use flare_model::ids::{FeedId, Ordinal};
use flare_provider::coding::bits::{self, DELTA_BYTES};
use flare_provider::coding::filtering;
use flare_provider::coding::position::{encode_ahead, encode_health, encode_sweep};
use flare_provider::{Conflict, FeedWrite, ProviderError, Result};
use roaring::RoaringBitmap;
use tokio_postgres::types::ToSql;

use super::open::fenced;
use super::{kept, notes, standings};
use crate::connect::Session;
use crate::documents::row::number;
use crate::error::{Work, corrupt};

const OPERATION: &str = "ledger.write";

const UPDATE: &str = "UPDATE feeds f SET incarnation = $3::bigint, cursor = u.cursor, issued = u.issued,
    judging = u.judging, life = u.life, delivered = u.delivered, discarded = u.discarded, failed = u.failed,
    skipped = u.skipped, since = u.since, last_success_at = u.last_success_at, failure_at = u.failure_at,
    failure_status = u.failure_status, failure_error = u.failure_error, sweep = u.sweep, ahead = u.ahead,
    filtering = u.filtering, unjudged = u.unjudged, judged = u.judged, health = u.health,
    held_delta = f.held_delta || u.added
    FROM unnest($1::bigint[], $2::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::integer[],
    $16::bytea[], $17::bytea[], $18::bytea[], $19::bytea[], $20::bytea[], $21::bytea[], $22::bytea[], $23::bytea[])
    u (id, epoch, cursor, issued, judging, life, delivered, discarded, failed, skipped, since, last_success_at,
    failure_at, failure_status, failure_error, sweep, ahead, filtering, unjudged, judged, health, added)
    WHERE f.id = u.id AND f.epoch = u.epoch RETURNING f.id, octet_length(f.held_delta)";

/// Rows of feeds by column.
#[derive(Default)]
struct Columns {
    id: Vec<i64>,
    epoch: Vec<i64>,
    numbers: [Vec<i64>; 8],
    times: [Vec<Option<i64>>; 3],
    failure_status: Vec<Option<i32>>,
    bytes: [Vec<Option<Vec<u8>>>; 7],
    added: Vec<Vec<u8>>,
}

impl Columns {
    fn push(&mut self, write: &FeedWrite) {
        let FeedWrite { feed, epoch, record } = write;
        let tally = &record.tally;
        let failure = tally.last_failure.as_ref();
        self.id.push(feed.packed() as i64);
        self.epoch.push(*epoch as i64);
        let numbers = [
            record.cursor.0,
            record.issued.0,
            record.judging.0,
            record.life,
            tally.delivered,
            tally.discarded,
            tally.failed,
            tally.skipped,
        ];
        for (column, number) in self.numbers.iter_mut().zip(numbers) {
            column.push(number as i64);
        }
        let times = [
            record.since.map(|since| since.0 as i64),
            tally.last_success_at.map(|at| at.millis()),
            failure.map(|failure| failure.at.millis()),
        ];
        for (column, time) in self.times.iter_mut().zip(times) {
            column.push(time);
        }
        self.failure_status.push(failure.and_then(|failure| failure.status).map(i32::from));
        let bytes = [
            failure.map(|failure| failure.error.clone().into_bytes()),
            record.sweep.as_ref().map(encode_sweep),
            encode_ahead(record.cursor, &record.ahead),
            record.filtering.as_deref().map(filtering::encode),
            (!record.unjudged.is_empty()).then(|| bits::write_set(&record.unjudged)),
            (!record.judged.is_empty()).then(|| bits::write_set(&record.judged)),
            tally.health.as_deref().map(encode_health),
        ];
        for (column, bytes) in self.bytes.iter_mut().zip(bytes) {
            column.push(bytes);
        }
        self.added.push(bits::encode(&record.held, &record.dropped));
    }

    /// Updates the rows that are there and of this epoch; answers these, with the length of the list behind each.
    async fn update(&self, session: &Session, incarnation: u64) -> Work<HashMap<i64, usize>> {
        let update = session.prepare(UPDATE).await?;
        let incarnation = incarnation as i64;
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&self.id, &self.epoch, &incarnation];
        values.extend(self.numbers.iter().map(|column| column as &(dyn ToSql + Sync)));
        values.extend(self.times.iter().map(|column| column as &(dyn ToSql + Sync)));
        values.push(&self.failure_status);
        values.extend(self.bytes.iter().map(|column| column as &(dyn ToSql + Sync)));
        values.push(&self.added);
        let mut written = HashMap::new();
        for row in session.client.query(&update, &values).await? {
            written.insert(row.try_get(0)?, row.try_get::<_, i32>(1)? as usize);
        }
        Ok(written)
    }
}

/// Whether a record says something that is not in the row of its feed.
fn has_more(record: &Record) -> bool {
    !(record.standings.is_empty()
        && record.cleared.is_empty()
        && record.kept.is_empty()
        && record.forgotten.is_empty()
        && record.notes.is_empty()
        && record.unnoted.is_empty())
}

/// How records are to be written.
pub(crate) struct Plan<'w> {
    /// In each of them a feed is there once at most.
    rounds: Vec<Vec<(usize, &'w FeedWrite)>>,
    quantity: usize,
}

/// What is left to do once the records are durable, and answers for each.
pub(crate) struct Written {
    pub answers: Vec<Result<()>>,
    /// Feeds whose list has become long.
    pub long: Vec<i64>,
}

impl<'w> Plan<'w> {
    pub fn of(writes: &'w [FeedWrite]) -> Plan<'w> {
        let mut rounds: Vec<Vec<(usize, &FeedWrite)>> = Vec::new();
        let mut seen: HashMap<FeedId, usize> = HashMap::new();
        for (place, write) in writes.iter().enumerate() {
            let round = seen.entry(write.feed).and_modify(|round| *round += 1).or_insert(0);
            if rounds.len() <= *round {
                rounds.push(Vec::new());
            }
            rounds[*round].push((place, write));
        }
        // In the order in which feeds are opened: a node that takes some over waits for this one, and not each for the other.
        for round in &mut rounds {
            round.sort_by_key(|(_, write)| write.feed.packed() as i64);
        }
        Plan { rounds, quantity: writes.len() }
    }

    /// Whether it takes no more than one statement, which is a transaction by itself.
    pub fn is_one_statement(&self) -> bool {
        self.rounds.len() == 1 && self.rounds[0].iter().all(|(_, write)| !has_more(&write.record))
    }

    /// Writes them, within a transaction unless it is one statement.
    pub async fn write(&self, session: &Session, incarnation: u64) -> Work<Written> {
        let mut answers: Vec<Result<()>> = (0..self.quantity).map(|_| Ok(())).collect();
        let mut long: HashSet<i64> = HashSet::new();
        let mut refused: Vec<(usize, FeedId)> = Vec::new();
        for round in &self.rounds {
            let mut columns = Columns::default();
            round.iter().for_each(|(_, write)| columns.push(write));
            let written = columns.update(session, incarnation).await?;
            let is_written = |write: &FeedWrite| written.contains_key(&(write.feed.packed() as i64));
            long.extend(written.iter().filter(|(_, length)| **length > DELTA_BYTES).map(|(feed, _)| *feed));
            let taken: Vec<&FeedWrite> =
                round.iter().map(|(_, write)| *write).filter(|write| is_written(write)).collect();
            refused.extend(
                round
                    .iter()
                    .filter(|(_, write)| !is_written(write))
                    .map(|(place, write)| (*place, write.feed)),
            );
            write_more(session, &taken).await?;
        }
        if !refused.is_empty() {
            let there = session.prepare("SELECT id FROM feeds WHERE id = ANY($1)").await?;
            let ids: Vec<i64> = refused.iter().map(|(_, feed)| feed.packed() as i64).collect();
            let mut existing = HashSet::new();
            for row in session.client.query(&there, &[&ids]).await? {
                existing.insert(number(&row, 0)?);
            }
            for (place, feed) in refused {
                answers[place] = Err(match existing.contains(&feed.packed()) {
                    true => fenced(OPERATION, feed),
                    false => ProviderError::conflict(OPERATION, Conflict::Feed),
                });
            }
        }
        Ok(Written { answers, long: long.into_iter().collect() })
    }
}

/// Removes rows by feed and ordinal.
macro_rules! clear_sql {
    ($table:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " t USING unnest($1::bigint[], $2::bigint[]) u (feed, ordinal)
              WHERE t.feed = u.feed AND t.ordinal = u.ordinal"
        )
    };
}

/// Writes what is not in the rows of the feeds. Their rows are held, so nobody else does.
async fn write_more(session: &Session, writes: &[&FeedWrite]) -> Work<()> {
    clear(session, clear_sql!("standings"), gone(writes, |record| &record.cleared)).await?;
    clear(session, clear_sql!("kept"), gone(writes, |record| &record.forgotten)).await?;
    clear(session, clear_sql!("notes"), gone(writes, |record| &record.unnoted)).await?;
    let (mut standings, mut notes) = (standings::Columns::default(), notes::Columns::default());
    let mut kept = kept::Columns::default();
    for write in writes {
        let (feed, record) = (write.feed.packed() as i64, &write.record);
        record.standings.iter().for_each(|standing| standings.push(feed, standing));
        record.notes.iter().for_each(|note| notes.push(feed, note));
        kept.push(feed, record);
    }
    standings.write(session).await?;
    notes.write(session).await?;
    kept.write(session).await
}

/// Feeds and ordinals of what goes.
fn gone(writes: &[&FeedWrite], of: impl Fn(&Record) -> &Vec<Ordinal>) -> (Vec<i64>, Vec<i64>) {
    let (mut feeds, mut gone) = (Vec::new(), Vec::new());
    for write in writes {
        let ordinals = of(&write.record);
        feeds.extend(ordinals.iter().map(|_| write.feed.packed() as i64));
        gone.extend(ordinals.iter().map(|ordinal| ordinal.0 as i64));
    }
    (feeds, gone)
}

async fn clear(session: &Session, sql: &'static str, gone: (Vec<i64>, Vec<i64>)) -> Work<()> {
    let (feeds, gone) = gone;
    if feeds.is_empty() {
        return Ok(());
    }
    let clear = session.prepare(sql).await?;
    session.client.execute(&clear, &[&feeds, &gone]).await?;
    Ok(())
}

/// Folds the lists of feeds into their bitmaps, within a transaction. It changes nothing of what is said, so it does not
/// matter whose feeds they are.
pub(crate) async fn fold(session: &Session, feeds: &[i64]) -> Work<()> {
    let lock = session
        .prepare("SELECT id, held_delta FROM feeds WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE")
        .await?;
    let mut lists: BTreeMap<(i64, i64), Vec<(u64, bool)>> = BTreeMap::new();
    let mut there = Vec::new();
    for row in session.client.query(&lock, &[&feeds]).await? {
        let feed: i64 = row.try_get(0)?;
        let Some(entries) = bits::decode(row.try_get(1)?) else {
            return Err(corrupt(OPERATION, "the list of what a client has makes no sense").into());
        };
        there.push(feed);
        for (chunk, entries) in bits::by_chunk(entries) {
            lists.insert((feed, chunk), entries);
        }
    }
    let (ids, chunks): (Vec<i64>, Vec<i64>) = lists.keys().copied().unzip();
    let read = session
        .prepare(
            "SELECT h.feed, h.chunk, h.bits FROM unnest($1::bigint[], $2::bigint[]) u (feed, chunk)
             JOIN held h ON h.feed = u.feed AND h.chunk = u.chunk",
        )
        .await?;
    let mut stored: HashMap<(i64, i64), RoaringBitmap> = HashMap::new();
    for row in session.client.query(&read, &[&ids, &chunks]).await? {
        let (feed, chunk): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let Some(bits) = bits::read_chunk(chunk, row.try_get(2)?) else {
            let detail = format!("bitmap {chunk} of what a client has makes no sense");
            return Err(corrupt(OPERATION, detail).into());
        };
        stored.insert((feed, chunk), bits);
    }
    let bitmaps: Vec<Vec<u8>> = lists
        .iter()
        .map(|(key, entries)| {
            let mut bits = stored.remove(key).unwrap_or_default();
            bits::change_chunk(&mut bits, entries);
            bits::write_chunk(bits)
        })
        .collect();
    let put = session
        .prepare(
            "INSERT INTO held (feed, chunk, bits) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[])
             ON CONFLICT (feed, chunk) DO UPDATE SET bits = excluded.bits",
        )
        .await?;
    session.client.execute(&put, &[&ids, &chunks, &bitmaps]).await?;
    let empty = session.prepare("UPDATE feeds SET held_delta = '' WHERE id = ANY($1)").await?;
    session.client.execute(&empty, &[&there]).await?;
    Ok(())
}
