//! Audit: the folder of a store comes in; what is wrong in it goes out, in words for people. Nothing is written. A store that is
//! in use is looked at as it is at one moment: every commit leaves it whole.
//!
//! ```text
//! SQLite's own check → facts.rs: the catalog, which gives things their names
//!                    → catalog.rs: entities, their keys and lanes, the numbers given out
//!                    → ways.rs: every document is found by url, ordinal and seq, and nothing else is
//!                    → documents.rs: documents and older revisions fit their lanes, and the counts are true
//!                    → feeds.rs: what clients have and are owed are documents that are there
//! ```
//! All of it is read in one snapshot, row by row. Memory: a bit for each document, and the recent changes.

mod catalog;
mod documents;
mod facts;
mod feeds;
mod ways;

use std::fmt;
use std::path::Path;

use flare_provider::{ErrorKind, ProviderError, Result};
use rusqlite::Connection;

use crate::connect;
use crate::error::{self, Work};
use crate::folder::{self, Folder};
use crate::migrations;
use crate::snapshot::snapshot;
use facts::Facts;

const OPERATION: &str = "embedded.audit";

/// Memory for pages of the database.
const CACHE_BYTES: usize = 16 << 20;

/// Bound: so many findings are listed. When full: the rest is counted, and the last finding says how many there are.
const MOST: usize = 1000;

/// Something that is not as the engine promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about, by its names: a lane, a document, a feed.
    pub about: String,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.about, self.what)
    }
}

/// What was found so far.
#[derive(Default)]
struct Findings {
    listed: Vec<Finding>,
    more: u64,
}

impl Findings {
    fn add(&mut self, about: impl Into<String>, what: impl Into<String>) {
        if self.listed.len() < MOST {
            self.listed.push(Finding { about: about.into(), what: what.into() });
        } else {
            self.more += 1;
        }
    }

    fn list(mut self) -> Vec<Finding> {
        if self.more > 0 {
            let what = format!("{} more findings are not listed", self.more);
            self.listed.push(Finding { about: "the store".to_owned(), what });
        }
        self.listed
    }
}

/// Looks through a store; nothing found means that every promise of the engine about what is stored holds. `Unavailable`
/// when there is no store, `Unsupported` when it lacks migrations.
pub fn audit(path: &Path) -> Result<Vec<Finding>> {
    let database = folder::database(path);
    if !database.exists() {
        let detail = format!("there is no database in {}", path.display());
        return Err(ProviderError::new(ErrorKind::Unavailable, OPERATION, detail));
    }
    // Kept from starting meanwhile, if nobody has it.
    let _folder = Folder::try_take(path)?;
    audit_database(&database)
}

/// The same for a database that nobody else uses.
pub(crate) fn audit_database(database: &Path) -> Result<Vec<Finding>> {
    let failed = |trouble| error::reading(OPERATION, trouble);
    let connection = connect::reading(database, CACHE_BYTES).map_err(|error| failed(error.into()))?;
    migrations::require_all(&connection)?;
    snapshot(&connection, look).map_err(failed)
}

fn look(connection: &Connection) -> Work<Vec<Finding>> {
    let mut findings = Findings::default();
    check_file(connection, &mut findings)?;
    if !findings.listed.is_empty() {
        // What stands in damaged pages would only be told a second time, and wrongly.
        return Ok(findings.list());
    }
    let facts = Facts::read(connection)?;
    catalog::check(connection, &facts, &mut findings)?;
    let Some(met) = ways::check(connection, &facts, &mut findings)? else { return Ok(findings.list()) };
    documents::check(connection, &facts, &met, &mut findings)?;
    feeds::check(connection, &facts, &met, &mut findings)?;
    Ok(findings.list())
}

/// What SQLite says of its pages and indexes.
fn check_file(connection: &Connection, findings: &mut Findings) -> Work<()> {
    let mut check = connection.prepare(&format!("PRAGMA integrity_check({MOST})"))?;
    let mut rows = check.query([])?;
    while let Some(row) = rows.next()? {
        let word: String = row.get(0)?;
        if word != "ok" {
            findings.add("the database file", word);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_ends_with_how_much_is_not_in_it() {
        let mut findings = Findings::default();
        (0..MOST + 7).for_each(|number| findings.add(format!("document {number}"), "is odd"));
        let list = findings.list();
        assert_eq!(list.len(), MOST + 1);
        assert_eq!(list[0].to_string(), "document 0: is odd");
        assert_eq!(list[MOST].to_string(), "the store: 7 more findings are not listed");
    }
}
