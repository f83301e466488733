//! Commits: writes come in, are compared with the newest rows inside the writer's transaction, and go out as
//! outcomes, changed rows, and changes for the journal.

use std::sync::RwLockReadGuard;

use flare_model::document::{Document, Effect, Write, apply};
use flare_model::ids::{Ordinal, Seq};
use flare_provider::{Changed, Committed, Conflict, ProviderError, Result};
use rusqlite::{CachedStatement, Connection, params};

use super::history;
use super::row::{Known, has_url, is_of, known_columns, read_known};
use crate::desk::{Desk, Done};
use crate::error::Work;
use crate::job::Commit;
use crate::lanes::{Lane, Lanes};
use crate::place::url_key;
use crate::recent::{Change, Shelf};

/// Two statements and not a join: SQLite compiles a join again when another value is bound to it, which takes longer
/// than all the rest of a commit.
const BY_URL: &str = "SELECT document FROM by_url WHERE hash = ?1";
const BY_ID: &str = concat!("SELECT ", known_columns!(), " FROM documents d WHERE d.id = ?1");
const INSERT: &str = "INSERT INTO documents (id, lane, ordinal, seq, born, before, deleted, revision, nanos,
    revision_text, updated_at, url, content) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
const UPDATE: &str =
    "UPDATE documents SET seq = ?2, born = ?3, before = ?4, deleted = ?5, revision = ?6, nanos = ?7,
    revision_text = ?8, updated_at = ?9, content = ?10 WHERE id = ?1";

/// Runs all batches of a transaction. A failure of SQLite undoes all of them.
pub(crate) fn commit_all(desk: &mut Desk<'_>, commits: &mut [Commit]) -> Work<()> {
    if commits.is_empty() {
        return Ok(());
    }
    let mut committing = Committing {
        connection: desk.connection,
        statements: Statements::prepare(desk.connection)?,
        shelf: desk.recent.shelf(),
        lanes: desk.lanes,
        last_document: desk.last_document,
        done: &mut desk.done,
    };
    for commit in commits {
        if commit.batch.iter().any(|write| write.routed_by < desk.routing) {
            commit.batch.clear();
            commit.answers = Err(ProviderError::conflict("documents.commit", Conflict::Routing));
            continue;
        }
        let Ok(answers) = &mut commit.answers else { continue };
        for write in commit.batch.drain(..) {
            answers.push(committing.write(write)?);
        }
    }
    Ok(())
}

struct Statements<'c> {
    by_url: CachedStatement<'c>,
    by_id: CachedStatement<'c>,
    insert: CachedStatement<'c>,
    update: CachedStatement<'c>,
}

impl<'c> Statements<'c> {
    fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            by_url: connection.prepare_cached(BY_URL)?,
            by_id: connection.prepare_cached(BY_ID)?,
            insert: connection.prepare_cached(INSERT)?,
            update: connection.prepare_cached(UPDATE)?,
        })
    }
}

struct Committing<'d> {
    connection: &'d Connection,
    statements: Statements<'d>,
    shelf: RwLockReadGuard<'d, Shelf>,
    lanes: &'d mut Lanes,
    last_document: &'d mut i64,
    done: &'d mut Done,
}

impl Committing<'_> {
    fn write(&mut self, write: Write) -> Work<Result<Committed>> {
        let Some(lane) = self.lanes.get(self.connection, write.lane)? else {
            return Ok(Err(ProviderError::conflict("documents.commit", Conflict::Lane)));
        };
        let hash = url_key(&write.url);
        let known = self.find(lane.id, hash, &write.url)?;
        let current = known.as_ref().map(|known| (&known.row, &known.revision));
        let effect = apply(current, &write.intent, Seq(lane.head + 1), Ordinal(lane.next_ordinal));
        let (outcome, row, revision, content) = match effect {
            Effect::Nothing(outcome) => {
                let head = Seq(lane.head);
                return Ok(Ok(Committed { outcome, before: head, after: head }));
            }
            Effect::OtherKind => {
                return Ok(Err(ProviderError::conflict("documents.commit", Conflict::RevisionKind)));
            }
            Effect::Change { outcome, row, revision, content } => (outcome, row, revision, content),
        };
        if let Err(full) = lane.has_room() {
            return Ok(Err(full));
        }
        let Write { lane: lane_id, url, at: updated_at, .. } = write;
        let document = Document { lane: lane_id, row, url, revision, updated_at, content };
        let change = match &known {
            None => self.insert(lane.id, hash, &document)?,
            Some(known) => self.update(lane, known, &document)?,
        };
        self.lanes.set(lane_id, counted(lane, known.as_ref(), &document));
        self.done.changes.push(change);
        let replaced = known.map(|known| known.row.seq).unwrap_or_default();
        self.done.documents.push(Changed { document, replaced });
        Ok(Ok(Committed { outcome, before: Seq(lane.head), after: row.seq }))
    }

    /// Looks where it is quickest first: in this transaction, in memory, in the table.
    fn find(&mut self, lane: i64, hash: i64, url: &str) -> Work<Option<Known>> {
        let born = self.done.born.range((hash, i64::MIN)..=(hash, i64::MAX)).map(|(_, id)| *id);
        let recent = self.shelf.generations().flat_map(|generation| generation.with_hash(hash));
        let by_id = &mut self.statements.by_id;
        for id in born.chain(recent) {
            if let Some(known) = known(by_id, id, lane, url)? {
                return Ok(Some(known));
            }
        }
        let mut rows = self.statements.by_url.query([hash])?;
        while let Some(row) = rows.next()? {
            if let Some(known) = known(by_id, row.get(0)?, lane, url)? {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }

    fn insert(&mut self, lane: i64, hash: i64, document: &Document) -> Work<Change> {
        *self.last_document += 1;
        let id = *self.last_document;
        let Document { row, revision, .. } = document;
        let (value, nanos, text) = revision.to_parts();
        self.statements.insert.execute(params![
            id,
            lane,
            row.ordinal.0 as i64,
            row.seq.0 as i64,
            row.born.0 as i64,
            row.before.0 as i64,
            row.deleted,
            value,
            nanos,
            text,
            document.updated_at.millis(),
            &*document.url,
            &*document.content,
        ])?;
        self.done.born.insert((hash, id));
        Ok(Change::Born { document: id, lane, ordinal: row.ordinal.0, seq: row.seq.0, hash })
    }

    fn update(&mut self, lane: Lane, known: &Known, document: &Document) -> Work<Change> {
        let Document { row, revision, .. } = document;
        if lane.keeps {
            history::keep(self.connection, known.id, row.seq, document.updated_at)?;
        }
        let lane = lane.id;
        let (value, nanos, text) = revision.to_parts();
        self.statements.update.execute(params![
            known.id,
            row.seq.0 as i64,
            row.born.0 as i64,
            row.before.0 as i64,
            row.deleted,
            value,
            nanos,
            text,
            document.updated_at.millis(),
            &*document.content,
        ])?;
        Ok(Change::Moved { document: known.id, lane, seq: row.seq.0, from: known.row.seq.0 })
    }
}

/// A document by the id of its row, if it is the one that is looked for.
fn known(by_id: &mut CachedStatement<'_>, id: i64, lane: i64, url: &str) -> Work<Option<Known>> {
    let mut rows = by_id.query([id])?;
    match rows.next()? {
        Some(row) if is_of(row, lane)? && has_url(row, url)? => Ok(Some(read_known(row)?)),
        _ => Ok(None),
    }
}

/// The lane after a change.
fn counted(lane: Lane, before: Option<&Known>, after: &Document) -> Lane {
    let mut lane = Lane { head: after.row.seq.0, ..lane };
    match before {
        None => lane.next_ordinal += 1,
        Some(known) if known.row.deleted => lane.tombstones -= 1,
        Some(_) => lane.documents -= 1,
    }
    lane.revisions += u64::from(lane.keeps && before.is_some());
    if after.row.deleted {
        lane.tombstones += 1
    } else {
        lane.documents += 1
    }
    lane
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::StatementStatus;

    #[test]
    fn no_statement_of_a_commit_is_compiled_twice() {
        let connection = Connection::open_in_memory().expect("memory");
        connection.execute_batch(include_str!("../migrations/0001_beginning.sql")).expect("the schema");
        for sql in [BY_URL, BY_ID, INSERT, UPDATE] {
            let mut statement = connection.prepare(sql).expect("it fits the schema");
            for round in 0..10_i64 {
                for index in 1..=statement.parameter_count() {
                    let text = index == 10 && sql == INSERT || index == 8 && sql == UPDATE || index == 12;
                    let bound = match (text, index == 13 || index == 10 && sql == UPDATE) {
                        (true, _) => statement.raw_bind_parameter(index, round.to_string()),
                        (_, true) => statement.raw_bind_parameter(index, &b"{}"[..]),
                        _ => statement.raw_bind_parameter(index, round),
                    };
                    bound.expect("it has so many");
                }
                let mut rows = statement.raw_query();
                while rows.next().expect("it runs").is_some() {}
            }
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{sql}");
        }
    }
}
