//! Rows of `standings`: the model's standings come in and go out, one by one, by feed, and in pages.

use flare_model::feed::{Standing, State};
use flare_model::ids::{FeedId, Ordinal, Seq};
use flare_model::time::Timestamp;
use flare_provider::ListStandings;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row};

use crate::error::{Work, WorkError, corrupt};
use crate::place::feed_key;
use crate::snapshot::snapshot;

const WAITING: i64 = 0;
/// The state of a dead letter, as stored.
pub(crate) const GAVE_UP: i64 = 1;
const DOUBTFUL: i64 = 2;
const LEASED: i64 = 3;
const PASSED: i64 = 4;

/// Writes and clears standings.
pub(crate) struct Writing<'c> {
    put: CachedStatement<'c>,
    clear: CachedStatement<'c>,
}

impl<'c> Writing<'c> {
    pub fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            put: connection.prepare_cached(
                "INSERT OR REPLACE INTO standings (feed, ordinal, seq, doubt, state, due, replay, trouble)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?,
            clear: connection.prepare_cached("DELETE FROM standings WHERE feed = ?1 AND ordinal = ?2")?,
        })
    }

    pub fn put(&mut self, feed: i64, standing: &Standing) -> rusqlite::Result<()> {
        let (state, due) = match standing.state {
            State::Waiting { due } => (WAITING, Some(due.millis())),
            State::Leased { until } => (LEASED, Some(until.millis())),
            State::GaveUp => (GAVE_UP, None),
            State::Doubtful => (DOUBTFUL, None),
            State::Passed => (PASSED, None),
        };
        let trouble = standing.trouble.as_deref().map(|trouble| {
            serde_json::to_string(trouble).expect("numbers, texts and dates can always be written")
        });
        let (ordinal, seq) = (standing.ordinal.0 as i64, standing.seq.0 as i64);
        let replay = standing.replay as i64;
        self.put.execute((feed, ordinal, seq, standing.doubt, state, due, replay, trouble))?;
        Ok(())
    }

    pub fn clear(&mut self, feed: i64, ordinal: Ordinal) -> rusqlite::Result<()> {
        self.clear.execute((feed, ordinal.0 as i64))?;
        Ok(())
    }
}

/// The columns of [`read`], in order.
macro_rules! standing_columns {
    () => {
        "ordinal, seq, doubt, state, due, replay, trouble"
    };
}

pub(crate) use standing_columns;

/// A standing from its columns.
pub(crate) fn read(row: &Row) -> Work<Standing> {
    let number = |index| row.get::<_, i64>(index).map(|number| number as u64);
    let ordinal = number(0)?;
    let senseless = |what: &str| {
        WorkError::Refused(corrupt(
            "ledger.standings",
            format!("{what} of the standing of document {ordinal}"),
        ))
    };
    let state = match (row.get(3)?, row.get::<_, Option<i64>>(4)?) {
        (WAITING, Some(due)) => State::Waiting { due: Timestamp::from_millis(due) },
        (LEASED, Some(until)) => State::Leased { until: Timestamp::from_millis(until) },
        (GAVE_UP, _) => State::GaveUp,
        (DOUBTFUL, _) => State::Doubtful,
        (PASSED, _) => State::Passed,
        _ => return Err(senseless("the state")),
    };
    let trouble = match row.get_ref(6)?.as_str_or_null().map_err(rusqlite::Error::from)? {
        Some(text) => Some(serde_json::from_str(text).map_err(|_| senseless("the story"))?),
        None => None,
    };
    Ok(Standing {
        ordinal: Ordinal(ordinal),
        seq: Seq(number(1)?),
        doubt: row.get(2)?,
        state,
        replay: number(5)?,
        trouble,
    })
}

/// All standings of a feed that are not dead letters.
pub(crate) fn alive(connection: &Connection, feed: i64) -> Work<Vec<Standing>> {
    let mut alive = connection.prepare_cached(concat!(
        "SELECT ",
        standing_columns!(),
        " FROM standings WHERE feed = ?1 AND state IN (0, 2, 3, 4)"
    ))?;
    let mut rows = alive.query([feed])?;
    let mut standings = Vec::new();
    while let Some(row) = rows.next()? {
        standings.push(read(row)?);
    }
    standings.sort_by_key(|standing| standing.ordinal);
    Ok(standings)
}

/// One standing of a feed that exists.
pub(crate) fn one(connection: &Connection, feed: FeedId, ordinal: Ordinal) -> Work<Option<Standing>> {
    let Some(feed) = feed_key(feed) else { return Ok(None) };
    let mut one = connection.prepare_cached(concat!(
        "SELECT ",
        standing_columns!(),
        " FROM standings WHERE feed = ?1 AND ordinal = ?2 AND EXISTS (SELECT 1 FROM feeds WHERE id = ?1)"
    ))?;
    let mut rows = one.query((feed, ordinal.0 as i64))?;
    rows.next()?.map(read).transpose()
}

/// A page of the standings of a subscription, by lane and ordinal, with their total.
pub(crate) fn list(connection: &Connection, list: ListStandings) -> Work<(u64, Vec<(u8, Standing)>)> {
    snapshot(connection, |connection| {
        let subscription = i64::try_from(list.subscription.0).unwrap_or(-1);
        let mut lanes = connection.prepare_cached(
            "SELECT lanes FROM entities WHERE kind IN ('subscription', 'producer') AND number = ?1",
        )?;
        let lanes: u16 = lanes.query_row([subscription], |row| row.get(0)).optional()?.unwrap_or(0);
        let state = if list.dead { GAVE_UP } else { WAITING };
        let mut count =
            connection.prepare_cached("SELECT count(*) FROM standings WHERE feed = ?1 AND state = ?2")?;
        let mut page = connection.prepare_cached(concat!(
            "SELECT ",
            standing_columns!(),
            " FROM standings INDEXED BY standings_by_state
             WHERE feed = ?1 AND state = ?2 ORDER BY ordinal LIMIT ?3 OFFSET ?4"
        ))?;
        let (mut total, mut skip, mut found) = (0_u64, list.offset, Vec::new());
        for lane in (0..lanes).map(|lane| lane as u8) {
            let Some(feed) = feed_key(FeedId { subscription: list.subscription, lane }) else { break };
            let here = count.query_row((feed, state), |row| row.get::<_, i64>(0))? as u64;
            total += here;
            let left = list.limit - found.len() as u64;
            if skip >= here || left == 0 {
                skip = skip.saturating_sub(here);
                continue;
            }
            let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            let mut rows = page.query((feed, state, signed(left), signed(skip)))?;
            while let Some(row) = rows.next()? {
                found.push((lane, read(row)?));
            }
            skip = 0;
        }
        Ok((total, found))
    })
}
