//! Rows of `lanes`: locked by whoever changes something in a lane, in order of their ids, until that is durable.

use std::collections::BTreeMap;

use flare_model::document::Document;
use tokio_postgres::Row;

use super::row::{Known, number};
use crate::connect::Session;
use crate::error::Work;

/// One lane, as its row has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub id: i64,
    pub head: u64,
    pub next_ordinal: u64,
    pub documents: u64,
    pub tombstones: u64,
    /// How many older revisions are kept.
    pub revisions: u64,
    /// Whether what is replaced is kept.
    pub keeps: bool,
}

/// Locks lanes against everyone who writes, or wants to know their heads for certain. Those that do not exist are left out.
pub(crate) const LOCK: &str =
    "SELECT id, head, next_ordinal, documents, tombstones, revisions, keeps FROM lanes
    WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";

/// Locks lanes against writers.
const SHARE: &str = "SELECT id, head, next_ordinal, documents, tombstones, revisions, keeps FROM lanes
    WHERE id = ANY($1) ORDER BY id FOR SHARE";

pub(crate) const UPDATE: &str = "UPDATE lanes l SET head = u.head, next_ordinal = u.next_ordinal,
    documents = u.documents, tombstones = u.tombstones, revisions = u.revisions, keeps = u.keeps
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::boolean[])
    u (id, head, next_ordinal, documents, tombstones, revisions, keeps) WHERE l.id = u.id";

/// How lanes are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Nothing is written in them meanwhile.
    Share,
    /// And the caller may change them.
    Change,
}

impl Lane {
    /// A lane from a row.
    pub fn read(row: &Row) -> Work<Lane> {
        Ok(Lane {
            id: row.try_get(0)?,
            head: number(row, 1)?,
            next_ordinal: number(row, 2)?,
            documents: number(row, 3)?,
            tombstones: number(row, 4)?,
            revisions: number(row, 5)?,
            keeps: row.try_get(6)?,
        })
    }

    /// The lane after a change.
    pub fn count(&mut self, before: Option<&Known>, after: &Document) {
        self.head = after.row.seq.0;
        match before {
            None => self.next_ordinal += 1,
            Some(known) if known.row.deleted => self.tombstones -= 1,
            Some(_) => self.documents -= 1,
        }
        self.revisions += u64::from(self.keeps && before.is_some());
        if after.row.deleted { self.tombstones += 1 } else { self.documents += 1 }
    }
}

/// Locks lanes within a transaction.
pub(crate) async fn lock(session: &Session, ids: &[i64], hold: Hold) -> Work<BTreeMap<i64, Lane>> {
    let sql = match hold {
        Hold::Share => SHARE,
        Hold::Change => LOCK,
    };
    let statement = session.prepare(sql).await?;
    let mut lanes = BTreeMap::new();
    for row in session.client.query(&statement, &[&ids]).await? {
        let lane = Lane::read(&row)?;
        lanes.insert(lane.id, lane);
    }
    Ok(lanes)
}

/// Lanes by column.
#[derive(Default)]
pub(crate) struct LaneColumns {
    pub id: Vec<i64>,
    pub numbers: [Vec<i64>; 5],
    pub keeps: Vec<bool>,
}

impl LaneColumns {
    pub fn of<'l>(lanes: impl Iterator<Item = &'l Lane>) -> LaneColumns {
        let mut columns = LaneColumns::default();
        for lane in lanes {
            columns.id.push(lane.id);
            let numbers = [lane.head, lane.next_ordinal, lane.documents, lane.tombstones, lane.revisions];
            for (column, number) in columns.numbers.iter_mut().zip(numbers) {
                column.push(number as i64);
            }
            columns.keeps.push(lane.keeps);
        }
        columns
    }
}

/// Writes lanes that were locked.
pub(crate) async fn write(session: &Session, lanes: &BTreeMap<i64, Lane>) -> Work<()> {
    let columns = LaneColumns::of(lanes.values());
    if columns.id.is_empty() {
        return Ok(());
    }
    let statement = session.prepare(UPDATE).await?;
    let [head, next, documents, tombstones, revisions] = &columns.numbers;
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
        [&columns.id, head, next, documents, tombstones, revisions, &columns.keeps];
    session.client.execute(&statement, &values).await?;
    Ok(())
}
