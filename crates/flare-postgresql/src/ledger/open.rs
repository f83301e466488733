//! Opening feeds: ids and an epoch come in; the epoch is made durable, and only then is read what the feeds have.

use std::collections::HashMap;

use flare_model::feed::{Failure, Saved, Standing, Tally};
use flare_model::ids::{FeedId, Seq};
use flare_model::time::Timestamp;
use flare_provider::coding::{bits, filtering, position};
use flare_provider::{ErrorKind, Opened, ProviderError};
use roaring::{RoaringBitmap, RoaringTreemap};
use tokio_postgres::Row;

use super::notes;
use super::standings::{self, GAVE_UP, standing_columns};
use crate::connect::Session;
use crate::documents::row::number;
use crate::error::{Work, WorkError, corrupt};

const OPERATION: &str = "ledger.open";

/// Bound: so many feeds are read in one snapshot. When full: the rest is read in the next. A long snapshot would keep the
/// server from tidying up.
pub(crate) const SLICE: usize = 1024;

/// Raises the epoch of all feeds that exist, or of none, within a transaction.
pub(crate) async fn raise(session: &Session, feeds: &[FeedId], epoch: u64) -> Work<()> {
    let ids = keys(feeds);
    let lock = session
        .prepare("SELECT id, epoch FROM feeds WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE")
        .await?;
    for row in session.client.query(&lock, &[&ids]).await? {
        if number(&row, 1)? > epoch {
            return Err(fenced(OPERATION, FeedId::unpacked(number(&row, 0)?)).into());
        }
    }
    let epoch = epoch as i64;
    let raise = session.prepare("UPDATE feeds SET epoch = $2 WHERE id = ANY($1) AND epoch < $2").await?;
    session.client.execute(&raise, &[&ids, &epoch]).await?;
    let note = session.prepare("UPDATE numbers SET value = $1 WHERE name = 'epoch' AND value < $1").await?;
    session.client.execute(&note, &[&epoch]).await?;
    Ok(())
}

/// What belongs to some feeds beside their rows.
#[derive(Default)]
struct Belongings {
    chunks: Vec<(i64, RoaringBitmap)>,
    standings: Vec<Standing>,
    dead: RoaringTreemap,
    dead_in_doubt: RoaringTreemap,
    noted: RoaringTreemap,
    untold: RoaringTreemap,
}

/// Reads feeds within one snapshot, in the order in which they are asked for.
pub(crate) async fn read(session: &Session, feeds: &[FeedId]) -> Work<Vec<Opened>> {
    let ids = keys(feeds);
    let find = session
        .prepare(
            "SELECT f.id, (SELECT head FROM lanes WHERE id = f.lane), f.cursor, f.issued, f.ahead, f.sweep,
             f.delivered, f.discarded, f.failed, f.skipped, f.last_success_at, f.failure_at, f.failure_status,
             f.failure_error,
             f.incarnation <> (SELECT value FROM numbers WHERE name = 'incarnation'), f.held_delta, f.life, f.filtering, f.since, f.judging, f.unjudged,
             f.judged, f.health FROM feeds f WHERE f.id = ANY($1)",
        )
        .await?;
    let mut rows = HashMap::new();
    for row in session.client.query(&find, &[&ids]).await? {
        rows.insert(row.try_get::<_, i64>(0)?, row);
    }
    let mut belongings = belongings(session, &ids).await?;
    let mut opened = Vec::with_capacity(feeds.len());
    for feed in feeds {
        let key = feed.packed() as i64;
        let Some(row) = rows.get(&key) else { continue };
        let own = belongings.remove(&key).unwrap_or_default();
        let head = Seq(row.try_get::<_, Option<i64>>(1)?.unwrap_or(0) as u64);
        opened.push(Opened { feed: *feed, saved: saved(row, *feed, own)?, head });
    }
    Ok(opened)
}

async fn belongings(session: &Session, ids: &[i64]) -> Work<HashMap<i64, Belongings>> {
    let mut all: HashMap<i64, Belongings> = HashMap::new();
    let chunks = session.prepare("SELECT feed, chunk, bits FROM held WHERE feed = ANY($1)").await?;
    for row in session.client.query(&chunks, &[&ids]).await? {
        let chunk = row.try_get(1)?;
        let Some(bits) = bits::read_chunk(chunk, row.try_get(2)?) else {
            return Err(
                corrupt(OPERATION, format!("bitmap {chunk} of what a client has makes no sense")).into()
            );
        };
        all.entry(row.try_get(0)?).or_default().chunks.push((chunk, bits));
    }
    let alive = session
        .prepare(concat!(
            "SELECT s.feed, ",
            standing_columns!(),
            " FROM standings s WHERE s.feed = ANY($1) AND s.state <> $2 ORDER BY s.feed, s.ordinal"
        ))
        .await?;
    for row in session.client.query(&alive, &[&ids, &GAVE_UP]).await? {
        all.entry(row.try_get(0)?).or_default().standings.push(standings::read(&row, 1)?);
    }
    let dead = session
        .prepare("SELECT feed, ordinal, doubt FROM standings WHERE feed = ANY($1) AND state = $2")
        .await?;
    for row in session.client.query(&dead, &[&ids, &GAVE_UP]).await? {
        let own = all.entry(row.try_get(0)?).or_default();
        own.dead.insert(number(&row, 1)?);
        if row.try_get(2)? {
            own.dead_in_doubt.insert(number(&row, 1)?);
        }
    }
    let noted = session.prepare("SELECT feed, ordinal, kind FROM notes WHERE feed = ANY($1)").await?;
    for row in session.client.query(&noted, &[&ids]).await? {
        let own = all.entry(row.try_get(0)?).or_default();
        own.noted.insert(number(&row, 1)?);
        if notes::left(row.try_get(2)?).is_some_and(|left| !left.lags()) {
            own.untold.insert(number(&row, 1)?);
        }
    }
    Ok(all)
}

fn saved(row: &Row, feed: FeedId, own: Belongings) -> Work<Saved> {
    let senseless = |what: &str| {
        let detail = format!("{what} of feed {} of lane {} makes no sense", feed.subscription, feed.lane);
        WorkError::Refused(corrupt(OPERATION, detail))
    };
    let bytes = |index: usize| row.try_get::<_, Option<&[u8]>>(index);
    let cursor = Seq(number(row, 2)?);
    let ahead = position::decode_ahead(cursor, bytes(4)?).ok_or_else(|| senseless("what is ahead"))?;
    let sweep = match bytes(5)? {
        Some(bytes) => Some(position::decode_sweep(bytes).ok_or_else(|| senseless("the sweep"))?),
        None => None,
    };
    let filtering = match bytes(17)? {
        Some(bytes) => Some(filtering::decode(bytes).ok_or_else(|| senseless("what is kept for filters"))?),
        None => None,
    };
    let health = match bytes(22)? {
        Some(bytes) => Some(position::decode_health(bytes).ok_or_else(|| senseless("the health"))?),
        None => None,
    };
    let entries =
        bytes(15)?.and_then(bits::decode).ok_or_else(|| senseless("the list of what the client has"))?;
    let set = |index, what| match bytes(index)? {
        Some(bytes) => bits::read_set(bytes).ok_or_else(|| senseless(what)),
        None => Ok(RoaringTreemap::new()),
    };
    Ok(Saved {
        cursor,
        issued: Seq(number(row, 3)?),
        judging: Seq(number(row, 19)?),
        unjudged: set(20, "what is to be judged")?,
        judged: set(21, "what was judged")?,
        ahead,
        held: bits::join(own.chunks, entries),
        standings: own.standings,
        dead: own.dead,
        dead_in_doubt: own.dead_in_doubt,
        since: row.try_get::<_, Option<i64>>(18)?.map(|since| Seq(since as u64)),
        sweep,
        tally: Tally { health: health.map(Box::new), ..tally(row)? },
        life: number(row, 16)?,
        filtering: filtering.map(Box::new),
        noted: own.noted,
        untold: own.untold,
        strange: row.try_get(14)?,
    })
}

fn tally(row: &Row) -> Work<Tally> {
    let last_failure = match row.try_get::<_, Option<i64>>(11)? {
        Some(at) => {
            let error = row.try_get::<_, Option<&[u8]>>(13)?.unwrap_or_default();
            Some(Box::new(Failure {
                at: Timestamp::from_millis(at),
                status: row.try_get::<_, Option<i32>>(12)?.map(|status| status as u16),
                error: String::from_utf8_lossy(error).into_owned(),
            }))
        }
        None => None,
    };
    Ok(Tally {
        delivered: number(row, 6)?,
        discarded: number(row, 7)?,
        failed: number(row, 8)?,
        skipped: number(row, 9)?,
        last_success_at: row.try_get::<_, Option<i64>>(10)?.map(Timestamp::from_millis),
        last_failure,
        health: None,
    })
}

fn keys(feeds: &[FeedId]) -> Vec<i64> {
    feeds.iter().map(|feed| feed.packed() as i64).collect()
}

/// Someone else owns this feed now.
pub(crate) fn fenced(operation: &'static str, feed: FeedId) -> ProviderError {
    let detail = format!("feed {} of lane {}", feed.subscription, feed.lane);
    ProviderError::new(ErrorKind::Fenced, operation, detail)
}
