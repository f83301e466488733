//! Documents by column: what `unnest` takes, so that one statement writes any number of them.

use flare_model::document::Document;
use flare_model::ids::url_hash;
use flare_model::time::Timestamp;
use tokio_postgres::types::ToSql;

use super::row::key;

/// Documents, a vector for each column.
#[derive(Default)]
pub(crate) struct Columns<'d> {
    lane: Vec<i64>,
    ordinal: Vec<i64>,
    seq: Vec<i64>,
    born: Vec<i64>,
    before: Vec<i64>,
    deleted: Vec<bool>,
    revision: Vec<i64>,
    nanos: Vec<i32>,
    revision_text: Vec<Option<&'d str>>,
    updated_at: Vec<i64>,
    hash: Vec<i64>,
    url: Vec<&'d str>,
    content: Vec<&'d [u8]>,
}

impl<'d> Columns<'d> {
    pub fn of(documents: impl Iterator<Item = &'d Document>) -> Columns<'d> {
        let mut columns = Columns::default();
        documents.for_each(|document| columns.push(document));
        columns
    }

    pub fn is_empty(&self) -> bool {
        self.lane.is_empty()
    }

    fn push(&mut self, document: &'d Document) {
        let Document { lane, row, url, revision, updated_at, content } = document;
        let (value, nanos, text) = revision.to_parts();
        self.lane.push(key(*lane));
        self.ordinal.push(row.ordinal.0 as i64);
        self.seq.push(row.seq.0 as i64);
        self.born.push(row.born.0 as i64);
        self.before.push(row.before.0 as i64);
        self.deleted.push(row.deleted);
        self.revision.push(value);
        self.nanos.push(nanos as i32);
        self.revision_text.push(text);
        self.updated_at.push(updated_at.millis());
        self.hash.push(url_hash(url) as i64);
        self.url.push(url);
        self.content.push(content);
    }

    /// In the order of [`INSERT`]: all of them.
    pub fn all(&self) -> [&(dyn ToSql + Sync); 13] {
        [
            &self.lane,
            &self.ordinal,
            &self.seq,
            &self.born,
            &self.before,
            &self.deleted,
            &self.revision,
            &self.nanos,
            &self.revision_text,
            &self.updated_at,
            &self.hash,
            &self.url,
            &self.content,
        ]
    }

    /// In the order of [`UPDATE`]: what a change changes.
    pub fn changed(&self) -> [&(dyn ToSql + Sync); 11] {
        [
            &self.lane,
            &self.ordinal,
            &self.seq,
            &self.born,
            &self.before,
            &self.deleted,
            &self.revision,
            &self.nanos,
            &self.revision_text,
            &self.updated_at,
            &self.content,
        ]
    }
}

pub(crate) const INSERT: &str =
    "INSERT INTO documents (lane, ordinal, seq, born, before, deleted, revision, nanos,
    revision_text, updated_at, hash, url, content)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[],
    $7::bigint[], $8::integer[], $9::text[], $10::bigint[], $11::bigint[], $12::text[], $13::bytea[])";

pub(crate) const UPDATE: &str = "UPDATE documents d SET seq = u.seq, born = u.born, before = u.before,
    deleted = u.deleted, revision = u.revision, nanos = u.nanos, revision_text = u.revision_text,
    updated_at = u.updated_at, content = u.content
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[], $7::bigint[],
    $8::integer[], $9::text[], $10::bigint[], $11::bytea[])
    u (lane, ordinal, seq, born, before, deleted, revision, nanos, revision_text, updated_at, content)
    WHERE d.lane = u.lane AND d.ordinal = u.ordinal";

/// Keeps what documents are now, before the changes at `until` replace them.
pub(crate) const KEEP: &str =
    "INSERT INTO history (lane, ordinal, seq, born, before, deleted, revision, nanos,
    revision_text, updated_at, until, replaced_at, url, content)
    SELECT d.lane, d.ordinal, d.seq, d.born, d.before, d.deleted, d.revision, d.nanos, d.revision_text,
    d.updated_at, u.until, u.at, d.url, d.content
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) u (lane, ordinal, until, at)
    JOIN documents d ON d.lane = u.lane AND d.ordinal = u.ordinal";

/// Keeps what was made and replaced within one commit. The hash is given and not kept.
pub(crate) const KEEP_MADE: &str = "INSERT INTO history (lane, ordinal, seq, born, before, deleted, revision, nanos,
    revision_text, updated_at, url, content, until, replaced_at)
    SELECT u.lane, u.ordinal, u.seq, u.born, u.before, u.deleted, u.revision, u.nanos, u.revision_text,
    u.updated_at, u.url, u.content, u.until, u.at
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[], $7::bigint[],
    $8::integer[], $9::text[], $10::bigint[], $11::bigint[], $12::text[], $13::bytea[], $14::bigint[], $15::bigint[])
    u (lane, ordinal, seq, born, before, deleted, revision, nanos, revision_text, updated_at, hash, url, content,
    until, at)";

/// What goes into the history of the lanes.
#[derive(Default)]
pub(crate) struct Replaced {
    /// Of stored documents: lane, ordinal, until, at.
    pub lane: Vec<i64>,
    pub ordinal: Vec<i64>,
    pub until: Vec<i64>,
    pub at: Vec<i64>,
    /// Documents that this very commit made.
    pub made: Vec<Document>,
    pub made_until: Vec<i64>,
    pub made_at: Vec<i64>,
}

impl Replaced {
    /// A stored document is replaced.
    pub fn stored(&mut self, lane: i64, ordinal: u64, until: u64, at: Timestamp) {
        self.lane.push(lane);
        self.ordinal.push(ordinal as i64);
        self.until.push(until as i64);
        self.at.push(at.millis());
    }

    /// What this commit made is replaced by it.
    pub fn made(&mut self, document: Document, until: u64, at: Timestamp) {
        self.made.push(document);
        self.made_until.push(until as i64);
        self.made_at.push(at.millis());
    }
}
