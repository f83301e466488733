//! Rows of `documents` and `history`: what the server has comes in, the model's types go out.

use std::sync::Arc;

use bytes::Bytes;
use flare_model::document::{Document, Row as Numbers};
use flare_model::ids::{LaneId, Ordinal, Seq};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use tokio_postgres::Row;

use crate::error::Work;

/// The columns of [`read_known`], in order.
macro_rules! known_columns {
    () => {
        "d.lane, d.ordinal, d.seq, d.born, d.before, d.deleted, d.revision, d.nanos, d.revision_text, d.url"
    };
}

/// The columns of [`read_document`], in order.
macro_rules! document_columns {
    () => {
        concat!($crate::documents::row::known_columns!(), ", d.updated_at, d.content")
    };
}

pub(crate) use {document_columns, known_columns};

/// What a commit compares: a document without its content.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub row: Numbers,
    pub revision: Revision,
}

/// A number that is never negative.
pub(crate) fn number(row: &Row, index: usize) -> Work<u64> {
    Ok(row.try_get::<_, i64>(index)? as u64)
}

/// A bound that is compared: what is beyond the largest number that is stored is that number.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The key of a lane.
pub(crate) fn key(lane: LaneId) -> i64 {
    lane.packed() as i64
}

/// A document without its content.
pub(crate) fn read_known(row: &Row) -> Work<Known> {
    let numbers = Numbers {
        ordinal: Ordinal(number(row, 1)?),
        seq: Seq(number(row, 2)?),
        born: Seq(number(row, 3)?),
        before: Seq(number(row, 4)?),
        deleted: row.try_get(5)?,
    };
    let nanos = row.try_get::<_, i32>(7)? as u32;
    let revision = Revision::from_parts(row.try_get(6)?, nanos, row.try_get(8)?);
    Ok(Known { row: numbers, revision })
}

/// A whole document.
pub(crate) fn read_document(row: &Row, lane: LaneId) -> Work<Document> {
    let Known { row: numbers, revision } = read_known(row)?;
    Ok(Document {
        lane,
        row: numbers,
        url: Arc::from(row.try_get::<_, &str>(9)?),
        revision,
        updated_at: Timestamp::from_millis(row.try_get(10)?),
        content: Bytes::copy_from_slice(row.try_get(11)?),
    })
}

/// The same of an outer join: `None` where there is none.
pub(crate) fn read_optional(row: &Row, lane: LaneId) -> Work<Option<Document>> {
    match row.try_get::<_, Option<i64>>(0)? {
        Some(_) => read_document(row, lane).map(Some),
        None => Ok(None),
    }
}
