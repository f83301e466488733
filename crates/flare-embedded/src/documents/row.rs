//! Rows of `documents`: what SQLite has comes in, the model's types go out.

use std::sync::Arc;

use bytes::Bytes;
use flare_model::document::{Document, Row};
use flare_model::ids::{LaneId, Ordinal, Seq};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use rusqlite::Result;

/// The columns of [`read_known`], in order. A macro, so that statements are whole texts at compile time.
macro_rules! known_columns {
    () => {
        "d.id, d.lane, d.ordinal, d.seq, d.born, d.before, d.deleted, d.revision, d.nanos, d.revision_text, d.url"
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
#[derive(Debug)]
pub(crate) struct Known {
    /// The id of its row.
    pub id: i64,
    pub row: Row,
    pub revision: Revision,
}

/// Whether a row is of this lane. Ids of removed documents may be given out again, so what led here may be
/// older than the row.
pub(crate) fn is_of(row: &rusqlite::Row, lane: i64) -> Result<bool> {
    Ok(row.get::<_, i64>(1)? == lane)
}

/// Whether a row has this url.
pub(crate) fn has_url(row: &rusqlite::Row, url: &str) -> Result<bool> {
    Ok(row.get_ref(10)?.as_str()? == url)
}

/// The place of a row in the log.
pub(crate) fn seq_of(row: &rusqlite::Row) -> Result<u64> {
    number(row, 3)
}

/// A document without its content.
pub(crate) fn read_known(row: &rusqlite::Row) -> Result<Known> {
    let numbers = Row {
        ordinal: Ordinal(number(row, 2)?),
        seq: Seq(seq_of(row)?),
        born: Seq(number(row, 4)?),
        before: Seq(number(row, 5)?),
        deleted: row.get::<_, i64>(6)? != 0,
    };
    let text = row.get_ref(9)?.as_str_or_null()?;
    let revision = Revision::from_parts(row.get(7)?, row.get(8)?, text);
    Ok(Known { id: row.get(0)?, row: numbers, revision })
}

/// A whole document.
pub(crate) fn read_document(row: &rusqlite::Row, lane: LaneId) -> Result<Document> {
    let Known { row: numbers, revision, .. } = read_known(row)?;
    Ok(Document {
        lane,
        row: numbers,
        url: Arc::from(row.get_ref(10)?.as_str()?),
        revision,
        updated_at: Timestamp::from_millis(row.get(11)?),
        content: Bytes::copy_from_slice(row.get_ref(12)?.as_blob()?),
    })
}

fn number(row: &rusqlite::Row, index: usize) -> Result<u64> {
    row.get::<_, i64>(index).map(|number| number as u64)
}
