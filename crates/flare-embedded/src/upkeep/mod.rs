//! Keeping a database in order from the command line: a folder comes in, plans go out, and are carried out.

pub(crate) mod backup;
pub mod transfer;

use std::collections::BTreeSet;
use std::path::Path;

use flare_provider::upkeep::{Action, Change, objects};
use flare_provider::{ErrorKind, ProviderError, Result};
use rusqlite::{Connection, OpenFlags};

use crate::error::corrupt;
use crate::folder::{self, Folder};
use crate::{connect, migrations};

const OPERATION: &str = "embedded.upkeep";

/// What this version needs and the folder lacks: the database itself, and migrations. Reads only.
pub fn plan_setup(path: &Path) -> Result<Vec<Change>> {
    let name = folder::database(path).display().to_string();
    let fresh = !folder::database(path).exists();
    let mut changes = Vec::new();
    if fresh {
        let detail = "with all that this version needs".to_owned();
        changes.push(Change { action: Action::Create, kind: "database", name: name.clone(), detail });
    }
    for migration in migrations::status(path)?.into_iter().filter(|migration| migration.applied.is_none()) {
        let action = if fresh { Action::Create } else { Action::Update };
        let name = format!("{name}#{}", migration.number);
        changes.push(Change { action, kind: "migration", name, detail: migration.name });
    }
    Ok(changes)
}

/// Indexes that were there and are missing. Reads only.
pub fn plan_fixup(path: &Path) -> Result<Vec<Change>> {
    let database = folder::database(path);
    if !database.exists() {
        let detail = format!("there is no database in {}: run flare setup first", path.display());
        return Err(ProviderError::new(ErrorKind::Unsupported, OPERATION, detail));
    }
    let connection = connect::open(&database, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    let missing = missing(&connection, path)?;
    Ok(missing.into_iter().map(|(change, _)| change).collect())
}

/// The consumers that are stored, each with its id and body, also beside a running node; `None` where there is no store of the
/// present shape. Reads only.
pub fn consumers(path: &Path) -> Result<Option<Vec<(String, String)>>> {
    let database = folder::database(path);
    if !database.exists() {
        return Ok(None);
    }
    let connection = connect::open(&database, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    migrations::require_all(&connection)?;
    let read = || {
        let mut all =
            connection.prepare("SELECT id, body FROM entities WHERE kind = 'consumer' ORDER BY number")?;
        let all = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        all.collect::<rusqlite::Result<Vec<(String, String)>>>()
    };
    read().map(Some).map_err(failed)
}

/// Makes them, and answers which. No node may use the folder meanwhile.
pub fn fixup(path: &Path) -> Result<Vec<Change>> {
    let folder = Folder::take(path)?;
    let connection = connect::writing(&folder.database(), 1 << 20).map_err(failed)?;
    let mut done = Vec::new();
    for (change, sql) in missing(&connection, path)? {
        connection.execute_batch(sql).map_err(failed)?;
        done.push(change);
    }
    Ok(done)
}

fn missing(connection: &Connection, path: &Path) -> Result<Vec<(Change, &'static str)>> {
    migrations::require_all(connection)?;
    let read = || {
        let mut names = connection.prepare("SELECT name FROM sqlite_schema")?;
        let names = names.query_map([], |row| row.get::<_, String>(0))?;
        names.collect::<rusqlite::Result<BTreeSet<String>>>()
    };
    let there = read().map_err(failed)?;
    let mut changes = Vec::new();
    for object in migrations::all().flat_map(objects).filter(|object| !there.contains(object.name)) {
        let name = format!("{}#{}", folder::database(path).display(), object.name);
        if object.kind != "index" {
            let detail = format!("the table {name} is missing, with its rows: restore a backup");
            return Err(corrupt(OPERATION, detail));
        }
        let detail = "it is missing".to_owned();
        changes.push((Change { action: Action::Create, kind: "index", name, detail }, object.sql));
    }
    Ok(changes)
}

fn failed(error: rusqlite::Error) -> ProviderError {
    crate::error::reading(OPERATION, error.into())
}
