//! The lanes as the writer knows them: lane ids come in, the numbers that each gives out next go out. What a
//! transaction takes is given back when it fails.

use std::collections::HashMap;

use flare_model::ids::{LaneId, ResourceNumber};
use flare_provider::{ErrorKind, ProviderError};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::Work;
use crate::place::LAST;

/// One lane, as its row has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    /// The number under which its documents are kept.
    pub id: i64,
    pub head: u64,
    pub next_ordinal: u64,
    pub documents: u64,
    pub tombstones: u64,
    /// Whether what is replaced is kept.
    pub keeps: bool,
    /// How many older revisions are kept.
    pub revisions: u64,
}

/// The columns of [`Lane::read`], in order.
macro_rules! lane_columns {
    () => {
        "id, head, next_ordinal, documents, tombstones, keeps, revisions"
    };
}

pub(crate) use lane_columns;

impl Lane {
    /// A lane from a row of its columns.
    pub fn read(row: &Row) -> rusqlite::Result<Lane> {
        let number = |index| row.get::<_, i64>(index).map(|number| number as u64);
        Ok(Lane {
            id: row.get(0)?,
            head: number(1)?,
            next_ordinal: number(2)?,
            documents: number(3)?,
            tombstones: number(4)?,
            keeps: row.get(5)?,
            revisions: number(6)?,
        })
    }

    /// Whether it can give out another seq and ordinal.
    pub fn has_room(&self) -> Result<(), ProviderError> {
        if self.head < LAST && self.next_ordinal < LAST {
            return Ok(());
        }
        Err(ProviderError::new(ErrorKind::Internal, "documents.commit", "the lane has no numbers left"))
    }
}

/// The row of a lane that is not gone, if there is one.
pub(crate) fn find(connection: &Connection, lane: LaneId) -> Work<Option<Lane>> {
    let Ok(resource) = i64::try_from(lane.resource.0) else { return Ok(None) };
    let mut find = connection.prepare_cached(concat!(
        "SELECT ",
        lane_columns!(),
        " FROM lanes WHERE resource = ?1 AND place = ?2 AND gone = 0"
    ))?;
    Ok(find.query_row((resource, lane.index), Lane::read).optional()?)
}

/// The lanes that were used so far. Bound: the lanes that exist, at some 100 bytes each.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    known: HashMap<LaneId, Known>,
    /// Those that the transaction under way has changed.
    touched: Vec<LaneId>,
}

#[derive(Debug)]
struct Known {
    now: Lane,
    /// What is durable, while a transaction has changed it.
    durable: Option<Lane>,
}

impl Lanes {
    /// A lane as the transaction under way sees it. `None` when there is none.
    pub fn get(&mut self, connection: &Connection, id: LaneId) -> Work<Option<Lane>> {
        if let Some(known) = self.known.get(&id) {
            return Ok(Some(known.now));
        }
        let found = find(connection, id)?;
        if let Some(now) = found {
            self.known.insert(id, Known { now, durable: None });
        }
        Ok(found)
    }

    /// Changes a lane that [`Lanes::get`] has found.
    pub fn set(&mut self, id: LaneId, lane: Lane) {
        let known = self.known.get_mut(&id).expect("only what was found is changed");
        if known.durable.is_none() {
            known.durable = Some(known.now);
            self.touched.push(id);
        }
        known.now = lane;
    }

    /// Writes what the transaction has changed.
    pub fn write(&self, connection: &Connection) -> Work<()> {
        if self.touched.is_empty() {
            return Ok(());
        }
        let mut update = connection.prepare_cached(
            "UPDATE lanes SET head = ?2, next_ordinal = ?3, documents = ?4, tombstones = ?5, keeps = ?6,
             revisions = ?7 WHERE id = ?1",
        )?;
        for id in &self.touched {
            let Lane { id, head, next_ordinal, documents, tombstones, keeps, revisions } = self.known[id].now;
            let numbers = [head, next_ordinal, documents, tombstones, revisions].map(|number| number as i64);
            update.execute((id, numbers[0], numbers[1], numbers[2], numbers[3], keeps, numbers[4]))?;
        }
        Ok(())
    }

    /// The transaction is durable.
    pub fn commit(&mut self) {
        for id in self.touched.drain(..) {
            if let Some(known) = self.known.get_mut(&id) {
                known.durable = None;
            }
        }
    }

    /// The transaction is undone.
    pub fn roll_back(&mut self) {
        for id in self.touched.drain(..) {
            if let Some(known) = self.known.get_mut(&id)
                && let Some(durable) = known.durable.take()
            {
                known.now = durable;
            }
        }
    }

    /// A resource is being deleted: its lanes are read anew, and then are not there.
    pub fn forget(&mut self, resource: ResourceNumber) {
        self.known.retain(|id, _| id.resource != resource);
        self.touched.retain(|id| id.resource != resource);
    }
}
