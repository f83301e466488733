//! Recent changes: those that are in the journal and not yet in the tables `by_url`, `by_ordinal` and `by_seq`.
//! Commits come in, one by one; what they did to the ways to a document goes out, to the writer and to readers.
//!
//! A reader needs exactly what its snapshot has. It asks here *first* and begins its snapshot *then*: so
//! whatever left this memory in between is in the tables it sees. What was committed in between is in the rows
//! of the journal beyond the mark that it was given here, and those it reads itself ([`Recent::late`]).

mod change;
mod generation;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rusqlite::Connection;

pub(crate) use change::{Change, encode};
pub(crate) use generation::{Generation, Removed};

use crate::error::{Work, corrupt};

/// Bound: so many changes are gathered before they are folded; about 100 bytes each. When full: the generation
/// is folded, several entries for each new change, so that it is done long before the next one is full.
pub(crate) const GENERATION: usize = 32 * 1024;

/// The changes of the newest commits.
#[derive(Debug)]
pub(crate) struct Recent {
    shelf: RwLock<Shelf>,
}

/// The two generations.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    /// Takes the changes of new commits.
    young: Generation,
    /// Is being folded, and changes no more.
    old: Option<Arc<Generation>>,
    /// The newest commit that is in here, or in the tables.
    mark: i64,
}

impl Shelf {
    /// The newest commit this knows of.
    pub fn mark(&self) -> i64 {
        self.mark
    }

    /// Both generations, the newer one first.
    pub fn generations(&self) -> impl Iterator<Item = &Generation> {
        std::iter::once(&self.young).chain(self.old.as_deref())
    }
}

impl Recent {
    /// What the journal has, after a restart, and the highest document it speaks of. Bound: two generations, which
    /// is what it can have.
    pub fn load(connection: &Connection) -> Work<(Recent, i64)> {
        let mut shelf = Shelf::default();
        let mut highest = 0;
        shelf.young.partly_folded = true;
        shelf.mark = read(connection, 0, |change| {
            highest = highest.max(change.document());
            shelf.young.apply(change);
        })?;
        shelf.young.last = shelf.mark;
        shelf.young.partly_folded = shelf.young.changes > 0;
        Ok((Recent { shelf: RwLock::new(shelf) }, highest))
    }

    /// To look something up.
    pub fn shelf(&self) -> RwLockReadGuard<'_, Shelf> {
        // Nothing in here panics half-way through a change, so a poisoned lock still has whole maps.
        self.shelf.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn shelf_mut(&self) -> RwLockWriteGuard<'_, Shelf> {
        self.shelf.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the changes of a commit in, right after it is durable.
    pub fn commit(&self, number: i64, changes: &[Change]) {
        let mut shelf = self.shelf_mut();
        changes.iter().for_each(|change| shelf.young.apply(*change));
        shelf.young.last = number;
        shelf.mark = number;
    }

    /// Begins to fold what was gathered, if it is at least `changes`, and the generation before is done.
    pub fn rotate(&self, changes: usize) -> Option<Arc<Generation>> {
        if self.shelf().young.changes < changes.max(1) {
            return None;
        }
        let mut shelf = self.shelf_mut();
        if shelf.old.is_some() {
            return None;
        }
        let old = Arc::new(std::mem::take(&mut shelf.young));
        shelf.young.last = old.last;
        shelf.old = Some(old.clone());
        Some(old)
    }

    /// Forgets the generation that was folded, right after the last of it is durable in the tables.
    pub fn folded(&self) {
        // Taken out under the lock and freed after it: freeing ten thousand nodes takes a while.
        let old = self.shelf_mut().old.take();
        drop(old);
    }

    /// What a snapshot has beyond the mark.
    pub fn late(snapshot: &Connection, mark: i64) -> Work<Generation> {
        let mut late = Generation::default();
        late.last = read(snapshot, mark, |change| late.apply(change))?;
        Ok(late)
    }
}

/// Reads the journal beyond a commit, and answers its newest.
fn read(connection: &Connection, after: i64, mut each: impl FnMut(Change)) -> Work<i64> {
    let mut rows =
        connection.prepare_cached("SELECT number, changes FROM journal WHERE number > ?1 ORDER BY number")?;
    let mut rows = rows.query([after])?;
    let mut last = after;
    while let Some(row) = rows.next()? {
        last = row.get(0)?;
        let changes = change::decode(row.get_ref(1)?.as_blob().unwrap_or(&[0]));
        let Some(changes) = changes else {
            return Err(
                corrupt("documents.journal", format!("row {last} of the journal makes no sense")).into()
            );
        };
        changes.into_iter().for_each(&mut each);
    }
    Ok(last)
}
