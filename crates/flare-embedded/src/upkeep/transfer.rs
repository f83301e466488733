//! Everything that a database has, as the rows of an engine over SQL: a folder that no process uses comes in, rows go out, of one
//! snapshot. What belonged to deleted entities stays behind.

use std::path::Path;

use flare_model::ids::url_hash;
use flare_provider::transfer::{Cell, Rows};
use flare_provider::{ErrorKind, ProviderError, Result};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::folder::{self, Folder};
use crate::snapshot::snapshot;
use crate::{connect, error, migrations};

const OPERATION: &str = "embedded.export";
const CACHE_BYTES: usize = 16 << 20;

/// A table, its columns as the others have them, and how they are read here: lanes and feeds have other keys there.
struct Table {
    name: &'static str,
    columns: &'static str,
    read: &'static str,
    /// The place of a hash that is worked out from the text before it.
    hash: Option<usize>,
}

const TABLES: &[Table] = &[
    Table {
        name: "entities",
        columns: "kind, number, id, version, parent, keys, body, lanes, history",
        read: "SELECT kind, number, id, version, parent, keys, body, lanes, history FROM entities",
        hash: None,
    },
    Table {
        name: "entity_keys",
        columns: "kind, scope, key, number",
        read: "SELECT kind, scope, CAST(key AS BLOB), number FROM entity_keys",
        hash: None,
    },
    Table {
        name: "deletions",
        columns: "version, kind, number, id, deleted_at",
        read: "SELECT version, kind, number, id, deleted_at FROM deletions",
        hash: None,
    },
    Table {
        name: "lanes",
        columns: "id, head, next_ordinal, documents, tombstones, revisions, keeps",
        read: "SELECT resource << 8 | place, head, next_ordinal, documents, tombstones, revisions, keeps FROM lanes
               WHERE gone = 0",
        hash: None,
    },
    Table {
        name: "documents",
        columns: "lane, ordinal, seq, born, before, deleted, revision, nanos, revision_text, updated_at, url, hash, content",
        read: "SELECT l.resource << 8 | l.place, d.ordinal, d.seq, d.born, d.before, d.deleted, d.revision, d.nanos,
               d.revision_text, d.updated_at, d.url, NULL, d.content FROM documents d
               JOIN lanes l ON l.id = d.lane AND l.gone = 0",
        hash: Some(11),
    },
    Table {
        name: "history",
        columns: "lane, ordinal, seq, born, before, deleted, revision, nanos, revision_text, updated_at, until, replaced_at, url, content",
        read: "SELECT l.resource << 8 | l.place, h.document & 0xffffffffff, h.place & 0xffffffffff, h.born, h.before,
               h.deleted, h.revision, h.nanos, h.revision_text, h.updated_at, h.until, h.replaced_at, h.url, h.content
               FROM history h JOIN lanes l ON l.id = h.place >> 40 AND l.gone = 0",
        hash: None,
    },
    Table {
        name: "feeds",
        columns: "id, lane, epoch, incarnation, cursor, issued, judging, life, delivered, discarded, failed, skipped, since, last_success_at, failure_at, failure_status, failure_error, sweep, ahead, filtering, unjudged, judged, health, held_delta",
        read: "SELECT ((f.id & 0xffffffffff) << 8) | (f.id >> 40), l.resource << 8 | l.place, f.epoch, f.incarnation, f.cursor,
               f.issued, f.judging, f.life, f.delivered, f.discarded, f.failed, f.skipped, f.since, f.last_success_at,
               f.failure_at, f.failure_status, CAST(f.failure_error AS BLOB), f.sweep, f.ahead, f.filtering, f.unjudged,
               f.judged, f.health, f.held_delta FROM feeds f JOIN lanes l ON l.id = f.lane",
        hash: None,
    },
    Table {
        name: "held",
        columns: "feed, chunk, bits",
        read: "SELECT ((h.feed & 0xffffffffff) << 8) | (h.feed >> 40), h.chunk, h.bits FROM held h
               WHERE EXISTS (SELECT 1 FROM feeds WHERE id = h.feed)",
        hash: None,
    },
    Table {
        name: "standings",
        columns: "feed, ordinal, seq, doubt, state, due, replay, trouble",
        read: "SELECT ((s.feed & 0xffffffffff) << 8) | (s.feed >> 40), s.ordinal, s.seq, s.doubt, s.state, s.due, s.replay,
               s.trouble FROM standings s WHERE EXISTS (SELECT 1 FROM feeds WHERE id = s.feed)",
        hash: None,
    },
    Table {
        name: "notes",
        columns: "feed, ordinal, seq, kind, story",
        read: "SELECT ((n.feed & 0xffffffffff) << 8) | (n.feed >> 40), n.ordinal, n.seq, n.kind, n.story FROM notes n
               WHERE EXISTS (SELECT 1 FROM feeds WHERE id = n.feed)",
        hash: None,
    },
    Table {
        name: "kept",
        columns: "feed, ordinal, life, revision, nanos, revision_text, content",
        read: "SELECT ((k.feed & 0xffffffffff) << 8) | (k.feed >> 40), k.ordinal, k.life, k.revision, k.nanos,
               k.revision_text, k.content FROM kept k WHERE EXISTS (SELECT 1 FROM feeds WHERE id = k.feed)",
        hash: None,
    },
    Table {
        name: "readings",
        columns: "consumer, partition, epoch, progress",
        read: "SELECT consumer, partition, epoch, progress FROM readings",
        hash: None,
    },
    Table {
        name: "letters",
        columns: "consumer, partition, received_at, story, payload",
        read: "SELECT consumer, partition, received_at, story, payload FROM letters ORDER BY number",
        hash: None,
    },
    // The log is the same one, and nobody is given a number again. Routing begins where it would after a start.
    Table {
        name: "numbers",
        columns: "name, value",
        read: "SELECT CASE name WHEN 'catalog_version' THEN 'catalog' WHEN 'last_resource' THEN 'resource'
               WHEN 'last_subscription' THEN 'subscription' WHEN 'last_epoch' THEN 'epoch'
               WHEN 'deletions_forgotten' THEN 'forgotten' ELSE name END, value FROM meta
               WHERE name IN ('incarnation', 'catalog_version', 'last_resource', 'last_subscription', 'last_epoch',
               'deletions_forgotten', 'sweeper')
               UNION ALL SELECT 'routing', coalesce(max(version), 0) FROM entities WHERE kind = 'resource'",
        hash: None,
    },
];

/// Gives everything to `rows`, in one snapshot, table by table. `Unavailable` when there is no store or it is in use,
/// `Unsupported` when it lacks migrations.
pub fn export(path: &Path, rows: &mut dyn Rows) -> Result<()> {
    let database = folder::database(path);
    if !database.exists() {
        let detail = format!("there is no database in {}", path.display());
        return Err(ProviderError::new(ErrorKind::Unavailable, OPERATION, detail));
    }
    let _folder = Folder::take(path)?;
    let failed = |trouble| error::reading(OPERATION, trouble);
    let connection = connect::reading(&database, CACHE_BYTES).map_err(|error| failed(error.into()))?;
    migrations::require_all(&connection)?;
    snapshot(&connection, |connection| {
        for table in TABLES {
            rows.table(table.name, table.columns)?;
            give(connection, table, rows)?;
        }
        Ok(())
    })
    .map_err(failed)
}

fn give(connection: &Connection, table: &Table, to: &mut dyn Rows) -> crate::error::Work<()> {
    let mut read = connection.prepare(table.read)?;
    let width = read.column_count();
    let mut found = read.query([])?;
    let mut cells = Vec::with_capacity(width);
    while let Some(row) = found.next()? {
        cells.clear();
        for index in 0..width {
            cells.push(match row.get_ref(index)? {
                ValueRef::Null => Cell::Null,
                ValueRef::Integer(number) => Cell::Number(number),
                ValueRef::Real(number) => Cell::Number(number as i64),
                ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
            });
        }
        if let Some(place) = table.hash
            && let Cell::Text(text) = &cells[place - 1]
        {
            cells[place] = Cell::Number(url_hash(text) as i64);
        }
        to.row(&cells)?;
    }
    Ok(())
}
