//! Copies of a store: the folder of one that may be in use comes in, a file with all of it at one moment goes out; and a file
//! comes in, and a folder goes out that has the same under another incarnation, so that nobody takes the one for the other.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use flare_provider::{EntityKind, ErrorKind, ProviderError, Result};
use rusqlite::{Connection, OpenFlags};

use crate::audit::{Finding, audit_database};
use crate::catalog::list;
use crate::connect;
use crate::error::{self, Moment, TransactionFailure, Work};
use crate::folder::{self, Folder};
use crate::{meta, migrations};

const COPYING: &str = "embedded.copy";
const PLACING: &str = "embedded.place";

/// Memory for pages of the database.
const CACHE_BYTES: usize = 16 << 20;

/// So much later, at least, than the incarnation before begins what the sequences count on from.
const LEAP: u64 = 1 << 34;

/// Copies the database of a folder, whether it is in use or not, into a file that is not there yet, as it is at one moment. A
/// writer goes on meanwhile; only its log cannot start over.
pub fn copy(path: &Path, to: &Path) -> Result<()> {
    let database = folder::database(path);
    if !database.exists() {
        let detail = format!("there is no database in {}", path.display());
        return Err(ProviderError::new(ErrorKind::Unavailable, COPYING, detail));
    }
    // Made here, so that it never was anybody else's; SQLite takes an empty file for none.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    made.map_err(|error| io(COPYING, "cannot make", to, error))?;
    let into = || {
        let connection = connect::reading(&database, CACHE_BYTES)?;
        connection.execute("VACUUM INTO ?1", [to.to_string_lossy().into_owned()])
    };
    into().map_err(|error| failed(COPYING, error))?;
    sync(COPYING, to)
}

/// Puts a copy into a folder that is empty or not there. It is looked through first: where something is wrong with it, that is
/// answered and nothing is left in the folder. `moment` is the time, in microseconds: sequences count on from there.
pub fn place(copy: &Path, path: &Path, moment: u64) -> Result<Vec<Finding>> {
    refuse_what_is_there(path)?;
    let folder = Folder::take(path)?;
    let unfinished = path.join("flare.db.unfinished");
    let placed = renew(copy, &unfinished, moment).and_then(|()| audit_database(&unfinished));
    match placed {
        Ok(findings) if findings.is_empty() => {
            std::fs::rename(&unfinished, folder.database())
                .map_err(|error| io(PLACING, "cannot write in", path, error))?;
            sync(PLACING, path)?;
            Ok(findings)
        }
        refused => {
            for name in ["flare.db.unfinished", "flare.db", "lock"] {
                let _ = std::fs::remove_file(path.join(name));
            }
            refused
        }
    }
}

/// Every entity of a kind as it is stored: its id and body.
pub fn stored(path: &Path, kind: EntityKind) -> Result<Vec<(String, String)>> {
    const OPERATION: &str = "embedded.stored";
    let read = || -> Work<Vec<(String, String)>> {
        let connection = connect::reading(&folder::database(path), CACHE_BYTES)?;
        let all = list(&connection, kind, 0, usize::MAX)?;
        Ok(all.into_iter().map(|entity| (entity.id, entity.body)).collect())
    };
    read().map_err(|trouble| error::reading(OPERATION, trouble))
}

/// A copy in which the log is another one.
fn renew(copy: &Path, to: &Path, moment: u64) -> Result<()> {
    let refuse = |error| io(PLACING, "cannot copy", copy, error);
    let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(refuse)?;
    std::io::copy(&mut File::open(copy).map_err(refuse)?, &mut target).map_err(refuse)?;
    drop(target);
    let is_sound = || {
        let connection = connect::open(to, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
    };
    match is_sound() {
        Ok(word) if word == "ok" => {}
        Ok(word) => return Err(error::corrupt(PLACING, word)),
        Err(error) => return Err(failed(PLACING, error)),
    }
    let connection = migrations::open(to, CACHE_BYTES)?;
    let change = |connection: &Connection| -> Work<()> {
        let before = meta::find(connection, "sequences_from")?.unwrap_or(0) as u64;
        let from = moment.max(before.saturating_add(LEAP));
        connection.execute("UPDATE meta SET value = random() WHERE name = 'incarnation'", [])?;
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('sequences_from', ?1)", [from as i64])?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        // Alone in its file again, so that it can be moved.
        connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
        Ok(())
    };
    change(&connection).map_err(|trouble| error::reading(PLACING, trouble))?;
    drop(connection);
    sync(PLACING, to)
}

fn refuse_what_is_there(path: &Path) -> Result<()> {
    let refuse = |detail: String| Err(ProviderError::new(ErrorKind::Unavailable, PLACING, detail));
    match std::fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => refuse(format!("{} is not empty: a copy goes into a folder of its own", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => refuse(format!("{} cannot be looked into: {error}", path.display())),
    }
}

fn sync(operation: &'static str, path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| io(operation, "cannot sync", path, error))
}

fn io(operation: &'static str, what: &str, path: &Path, error: std::io::Error) -> ProviderError {
    let detail = format!("{what} {}: {error}", path.display());
    ProviderError::new(ErrorKind::Unavailable, operation, detail).because(error)
}

fn failed(operation: &'static str, error: rusqlite::Error) -> ProviderError {
    TransactionFailure::of(error, Moment::Statement).told(operation)
}
