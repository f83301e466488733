//! Migrations: a folder comes in, a database of the present shape goes out. What was applied is recorded in the
//! database itself, so that running them again does nothing.

use std::path::Path;
use std::time::Duration;

use flare_provider::{ErrorKind, ProviderError, Result};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::connect::{self, PAGE_BYTES};
use crate::error::{Moment, TransactionFailure, corrupt};
use crate::folder::{self, Folder};

const OPERATION: &str = "embedded.migrate";

/// "FLRE": tells our files from those of other programs.
const APPLICATION: i64 = 0x464c_5245;

/// One step of the database's shape. Those that were released never change; new ones go to the end.
struct Step {
    number: i64,
    name: &'static str,
    sql: &'static str,
}

const STEPS: &[Step] = &[
    Step { number: 1, name: "beginning", sql: include_str!("migrations/0001_beginning.sql") },
    Step { number: 2, name: "kept states", sql: include_str!("migrations/0002_kept_states.sql") },
    Step { number: 3, name: "filters", sql: include_str!("migrations/0003_filters.sql") },
    Step { number: 4, name: "history", sql: include_str!("migrations/0004_history.sql") },
    Step { number: 5, name: "judging", sql: include_str!("migrations/0005_judging.sql") },
    Step { number: 6, name: "judged", sql: include_str!("migrations/0006_judged.sql") },
    Step { number: 7, name: "notes", sql: include_str!("migrations/0007_notes.sql") },
    Step { number: 8, name: "health", sql: include_str!("migrations/0008_health.sql") },
    Step { number: 9, name: "access", sql: include_str!("migrations/0009_access.sql") },
    Step { number: 10, name: "nodes", sql: include_str!("migrations/0010_nodes.sql") },
    Step { number: 11, name: "intake", sql: include_str!("migrations/0011_intake.sql") },
];

/// The statements of all steps, in order.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(|step| step.sql)
}

/// A migration and whether it was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its place in the order.
    pub number: i64,
    /// What it is about.
    pub name: String,
    /// Who applied it and when; `None` while it is pending.
    pub applied: Option<Applied>,
}

/// When a migration was applied, and by which version of Flare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// RFC 3339.
    pub at: String,
    /// The version of Flare that did it.
    pub by: String,
}

/// How long another process that brings the same folder to the present shape is waited for, and how often it is asked.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// All migrations, applied and pending. Reads only, also beside a running Flare. A database that a newer Flare has
/// written is an error.
pub fn status(path: &Path) -> Result<Vec<Migration>> {
    let database = folder::database(path);
    let mut known: Vec<Migration> = STEPS
        .iter()
        .map(|step| Migration { number: step.number, name: step.name.to_owned(), applied: None })
        .collect();
    if !database.exists() {
        return Ok(known);
    }
    let connection = connect::open(&database, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    if !ours(&connection)? {
        return Ok(known);
    }
    let applied = recorded(&connection)?;
    refuse_newer(&applied)?;
    for applied in applied {
        known.retain(|migration| migration.number != applied.number);
        known.push(applied);
    }
    known.sort_by_key(|migration| migration.number);
    Ok(known)
}

/// Applies what is pending, and answers that; nothing where nothing is, also beside a running Flare. Who else applies
/// them at this moment is waited for.
pub fn up(path: &Path) -> Result<Vec<Migration>> {
    let mut looks = PATIENCE.as_millis() / LOOK.as_millis();
    let folder = loop {
        if status(path)?.iter().all(|migration| migration.applied.is_some()) {
            return Ok(Vec::new());
        }
        if let Some(folder) = Folder::try_take(path)? {
            break folder;
        }
        if looks == 0 {
            break Folder::take(path)?;
        }
        looks -= 1;
        std::thread::sleep(LOOK);
    };
    let mut connection = begin(&folder.database(), 1 << 20)?;
    let before = recorded(&connection)?;
    apply(&mut connection)?;
    let mut after = recorded(&connection)?;
    after.retain(|migration| !before.contains(migration));
    Ok(after)
}

/// Opens a database, which may not be there yet, and brings it to the present shape.
pub(crate) fn open(database: &Path, cache_bytes: usize) -> Result<Connection> {
    let mut connection = begin(database, cache_bytes)?;
    apply(&mut connection)?;
    Ok(connection)
}

/// Opens a database; an empty one gets what cannot be changed later.
fn begin(database: &Path, cache_bytes: usize) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = connect::open(database, flags).map_err(failed)?;
    if !ours(&connection)? {
        connection
            .execute_batch(&format!("PRAGMA page_size = {PAGE_BYTES}; PRAGMA auto_vacuum = INCREMENTAL;"))
            .map_err(failed)?;
    }
    connect::to_write(connection, cache_bytes).map_err(failed)
}

/// Whether the database is one of Flare's; `false` when it is empty. Anything else is refused.
fn ours(connection: &Connection) -> Result<bool> {
    // In one snapshot: another process may apply the first migration between two looks.
    let snapshot = connection.unchecked_transaction().map_err(failed)?;
    let number = |sql: &str| snapshot.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(failed);
    let application = number("PRAGMA application_id")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    match (application, tables) {
        (APPLICATION, _) => Ok(true),
        (0, 0) => Ok(false),
        _ => {
            let path = connection.path().unwrap_or("the file");
            Err(corrupt(OPERATION, format!("{path} is a database of another program, not of Flare")))
        }
    }
}

fn apply(connection: &mut Connection) -> Result<()> {
    loop {
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let done = recorded(&transaction)?;
        refuse_newer(&done)?;
        let Some(step) = STEPS.iter().find(|step| done.iter().all(|done| done.number != step.number)) else {
            return Ok(());
        };
        let run = || {
            transaction.execute_batch(&format!(
                "PRAGMA application_id = {APPLICATION};
                 CREATE TABLE IF NOT EXISTS migrations (
                     number INTEGER PRIMARY KEY, name TEXT NOT NULL, flare TEXT NOT NULL, applied_at TEXT NOT NULL
                 ) STRICT;"
            ))?;
            transaction.execute_batch(step.sql)?;
            transaction.execute(
                "INSERT INTO migrations VALUES (?1, ?2, ?3, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
                (step.number, step.name, env!("CARGO_PKG_VERSION")),
            )
        };
        run().map_err(failed)?;
        transaction.commit().map_err(failed)?;
        tracing::info!(migration.number = step.number, migration.name = step.name, "migration applied");
    }
}

/// Whether the database is of the present shape: whoever only reads it cannot bring it there.
pub(crate) fn require_all(connection: &Connection) -> Result<()> {
    let done = if ours(connection)? { recorded(connection)? } else { Vec::new() };
    refuse_newer(&done)?;
    let pending = STEPS.iter().find(|step| done.iter().all(|done| done.number != step.number));
    pending.map_or(Ok(()), |step| {
        let detail = format!("the database lacks migration {} ({}); apply it first", step.number, step.name);
        Err(ProviderError::new(ErrorKind::Unsupported, OPERATION, detail))
    })
}

/// What a newer Flare wrote may mean something else: this one keeps its hands off.
fn refuse_newer(done: &[Migration]) -> Result<()> {
    let known = STEPS.last().map_or(0, |step| step.number);
    let Some(newer) = done.iter().rfind(|migration| migration.number > known) else { return Ok(()) };
    let by = newer.applied.as_ref().map_or("", |applied| &applied.by);
    Err(corrupt(
        OPERATION,
        format!(
            "the database was written by a newer Flare: it has migration {} ({}) of Flare {by}; this is Flare \
             {}, which knows migrations up to {known}",
            newer.number,
            newer.name,
            env!("CARGO_PKG_VERSION"),
        ),
    ))
}

/// The migrations that the database says were applied, in order.
fn recorded(connection: &Connection) -> Result<Vec<Migration>> {
    let read = || {
        let there = "SELECT count(*) FROM sqlite_schema WHERE name = 'migrations'";
        if connection.query_row(there, [], |row| row.get::<_, i64>(0))? == 0 {
            return Ok(Vec::new());
        }
        let mut all =
            connection.prepare("SELECT number, name, flare, applied_at FROM migrations ORDER BY number")?;
        let rows = all.query_map([], |row| {
            let applied = Applied { by: row.get(2)?, at: row.get(3)? };
            Ok(Migration { number: row.get(0)?, name: row.get(1)?, applied: Some(applied) })
        })?;
        rows.collect()
    };
    read().map_err(failed)
}

/// Whether the store in a folder never had anything: there is no database, or neither a resource or consumer nor a subscription
/// or producer was ever created in it. Reads only.
pub fn never_had_anything(path: &Path) -> Result<bool> {
    let database = folder::database(path);
    if !database.exists() {
        return Ok(true);
    }
    let connection = connect::open(&database, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    if !ours(&connection)? {
        return Ok(true);
    }
    let last = "SELECT sum(value) FROM meta WHERE name IN ('last_resource', 'last_subscription')";
    Ok(connection.query_row(last, [], |row| row.get::<_, i64>(0)).map_err(failed)? == 0)
}

fn failed(error: rusqlite::Error) -> ProviderError {
    TransactionFailure::of(error, Moment::Statement).told(OPERATION)
}
