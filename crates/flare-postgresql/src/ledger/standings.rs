//! Rows of `standings`: the model's standings come in and go out, one by one, by feed, and in pages.

use flare_model::feed::{Standing, State};
use flare_model::ids::{FeedId, Ordinal, Seq};
use flare_model::time::Timestamp;
use flare_provider::ListStandings;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::connect::Session;
use crate::documents::row::{number, signed};
use crate::error::{Work, corrupt};

const WAITING: i16 = 0;
/// The state of a dead letter, as stored.
pub(crate) const GAVE_UP: i16 = 1;
const DOUBTFUL: i16 = 2;
const LEASED: i16 = 3;
const PASSED: i16 = 4;

/// The columns of [`read`], in order.
macro_rules! standing_columns {
    () => {
        "s.ordinal, s.seq, s.doubt, s.state, s.due, s.replay, s.trouble"
    };
}

pub(crate) use standing_columns;

/// Standings by column.
#[derive(Default)]
pub(crate) struct Columns {
    feed: Vec<i64>,
    ordinal: Vec<i64>,
    seq: Vec<i64>,
    doubt: Vec<bool>,
    state: Vec<i16>,
    due: Vec<Option<i64>>,
    replay: Vec<i64>,
    trouble: Vec<Option<String>>,
}

impl Columns {
    pub fn push(&mut self, feed: i64, standing: &Standing) {
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
        self.feed.push(feed);
        self.ordinal.push(standing.ordinal.0 as i64);
        self.seq.push(standing.seq.0 as i64);
        self.doubt.push(standing.doubt);
        self.state.push(state);
        self.due.push(due);
        self.replay.push(standing.replay as i64);
        self.trouble.push(trouble);
    }

    /// Writes them, within a transaction.
    pub async fn write(&self, session: &Session) -> Work<()> {
        if self.feed.is_empty() {
            return Ok(());
        }
        let put = session
            .prepare(
                "INSERT INTO standings (feed, ordinal, seq, doubt, state, due, replay, trouble)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::boolean[], $5::smallint[],
                 $6::bigint[], $7::bigint[], $8::text[])
                 ON CONFLICT (feed, ordinal) DO UPDATE SET seq = excluded.seq, doubt = excluded.doubt,
                 state = excluded.state, due = excluded.due, replay = excluded.replay, trouble = excluded.trouble",
            )
            .await?;
        let values: [&(dyn ToSql + Sync); 8] = [
            &self.feed,
            &self.ordinal,
            &self.seq,
            &self.doubt,
            &self.state,
            &self.due,
            &self.replay,
            &self.trouble,
        ];
        session.client.execute(&put, &values).await?;
        Ok(())
    }
}

/// A standing from its columns, which begin at `at`.
pub(crate) fn read(row: &Row, at: usize) -> Work<Standing> {
    let ordinal = number(row, at)?;
    let senseless =
        |what: &str| corrupt("ledger.standings", format!("{what} of the standing of document {ordinal}"));
    let state = match (row.try_get::<_, i16>(at + 3)?, row.try_get::<_, Option<i64>>(at + 4)?) {
        (WAITING, Some(due)) => State::Waiting { due: Timestamp::from_millis(due) },
        (LEASED, Some(until)) => State::Leased { until: Timestamp::from_millis(until) },
        (GAVE_UP, _) => State::GaveUp,
        (DOUBTFUL, _) => State::Doubtful,
        (PASSED, _) => State::Passed,
        _ => return Err(senseless("the state").into()),
    };
    let trouble = match row.try_get::<_, Option<&str>>(at + 6)? {
        Some(text) => Some(serde_json::from_str(text).map_err(|_| senseless("the story"))?),
        None => None,
    };
    Ok(Standing {
        ordinal: Ordinal(ordinal),
        seq: Seq(number(row, at + 1)?),
        doubt: row.try_get(at + 2)?,
        state,
        replay: number(row, at + 5)?,
        trouble,
    })
}

/// One standing of a feed that exists.
pub(crate) async fn one(session: &Session, feed: FeedId, ordinal: Ordinal) -> Work<Option<Standing>> {
    let one = session
        .prepare(concat!(
            "SELECT ",
            standing_columns!(),
            " FROM standings s WHERE s.feed = $1 AND s.ordinal = $2 AND EXISTS (SELECT 1 FROM feeds WHERE id = $1)"
        ))
        .await?;
    let row = session.client.query_opt(&one, &[&(feed.packed() as i64), &(ordinal.0 as i64)]).await?;
    row.map(|row| read(&row, 0)).transpose()
}

/// A page of the standings of a subscription, by lane and ordinal, with their total.
pub(crate) async fn list(session: &Session, list: ListStandings) -> Work<(u64, Vec<(u8, Standing)>)> {
    let page = session
        .prepare(concat!(
            "SELECT t.total, s.feed, ",
            standing_columns!(),
            " FROM (SELECT count(*) AS total FROM standings s WHERE s.feed BETWEEN $1 AND $2 AND s.state = $3
                    AND EXISTS (SELECT 1 FROM feeds WHERE id = s.feed)) t
              LEFT JOIN (SELECT * FROM standings s WHERE s.feed BETWEEN $1 AND $2 AND s.state = $3
                    AND EXISTS (SELECT 1 FROM feeds WHERE id = s.feed)
                    ORDER BY s.feed, s.ordinal LIMIT $4 OFFSET $5) s ON true ORDER BY s.feed, s.ordinal"
        ))
        .await?;
    let feed = |lane| FeedId { subscription: list.subscription, lane }.packed() as i64;
    let state = if list.dead { GAVE_UP } else { WAITING };
    let rows = session
        .client
        .query(&page, &[&feed(0), &feed(u8::MAX), &state, &signed(list.limit), &signed(list.offset)])
        .await?;
    let (mut total, mut found) = (0, Vec::new());
    for row in rows {
        total = number(&row, 0)?;
        if let Some(feed) = row.try_get::<_, Option<i64>>(1)? {
            found.push((FeedId::unpacked(feed as u64).lane, read(&row, 2)?));
        }
    }
    Ok((total, found))
}
