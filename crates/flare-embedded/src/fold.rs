//! Folding: a generation of recent changes comes in, and goes slice by slice into the tables `by_url`,
//! `by_ordinal` and `by_seq`, in the order of their keys, so that many entries share a page.
//!
//! The journal keeps the generation until all of it is in the tables. A crash in between finds part of it there
//! and all of it in the journal, and folds it again: every entry says the same the second time.

use std::ops::Bound;
use std::sync::Arc;

use rusqlite::{CachedStatement, Connection};

use crate::recent::{Generation, Removed};

/// How far the folding of a generation has come. The writer takes a step within a transaction, and keeps the
/// new position only when that is durable.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    generation: Arc<Generation>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Urls(Option<(i64, i64)>),
    Ordinals(Option<i64>),
    Seqs(Option<i64>),
    Stale(Option<i64>),
    Removed(usize),
    Journal,
    Done,
}

impl Fold {
    /// Nothing is folded yet.
    pub fn new(generation: Arc<Generation>) -> Fold {
        Fold { generation, stage: Stage::Urls(None) }
    }

    /// Whether all of it is in the tables, and out of the journal.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// The newest commit of the generation.
    pub fn last(&self) -> i64 {
        self.generation.last
    }

    /// Folds up to `budget` entries.
    pub fn step(&mut self, connection: &Connection, mut budget: usize) -> rusqlite::Result<()> {
        while budget > 0 && !self.is_done() {
            let (stage, spent) = self.slice(connection, budget)?;
            self.stage = stage;
            budget -= spent.min(budget);
        }
        Ok(())
    }

    fn slice(&self, connection: &Connection, budget: usize) -> rusqlite::Result<(Stage, usize)> {
        let generation = &*self.generation;
        let sql = |sql| connection.prepare_cached(sql);
        match self.stage {
            Stage::Urls(after) => {
                let mut insert = sql("INSERT OR IGNORE INTO by_url (hash, document) VALUES (?1, ?2)")?;
                let entries = generation.by_url.range((beyond(after), Bound::Unbounded));
                let each = |entry: &(i64, i64)| insert.execute(*entry).map(|_| *entry);
                go_on(entries, budget, Stage::Urls, Stage::Ordinals(None), each)
            }
            Stage::Ordinals(after) => {
                let mut insert = sql("INSERT OR REPLACE INTO by_ordinal (place, document) VALUES (?1, ?2)")?;
                let entries = generation.by_ordinal.range((beyond(after), Bound::Unbounded));
                let each =
                    |(place, document): (&i64, &i64)| insert.execute((place, document)).map(|_| *place);
                go_on(entries, budget, Stage::Ordinals, Stage::Seqs(None), each)
            }
            Stage::Seqs(after) => {
                let mut insert = sql("INSERT OR REPLACE INTO by_seq (place, document) VALUES (?1, ?2)")?;
                let entries = generation.by_seq.range((beyond(after), Bound::Unbounded));
                let each =
                    |(place, document): (&i64, &i64)| insert.execute((place, document)).map(|_| *place);
                go_on(entries, budget, Stage::Seqs, Stage::Stale(None), each)
            }
            Stage::Stale(after) => {
                let mut delete = sql("DELETE FROM by_seq WHERE place = ?1")?;
                let entries = generation.stale.range((beyond(after), Bound::Unbounded));
                let each = |place: &i64| delete.execute([place]).map(|_| *place);
                go_on(entries, budget, Stage::Stale, Stage::Removed(0), each)
            }
            Stage::Removed(done) => {
                let mut delete = Removing::new(connection)?;
                let entries = generation.removed.iter().enumerate().skip(done);
                let each = |(index, removed): (usize, &Removed)| delete.all(removed).map(|()| index + 1);
                go_on(entries, budget, |index| Stage::Removed(index.unwrap_or(done)), Stage::Journal, each)
            }
            Stage::Journal => {
                let mut delete = sql("DELETE FROM journal WHERE number IN
                     (SELECT number FROM journal WHERE number <= ?1 ORDER BY number LIMIT ?2)")?;
                let gone = delete.execute((generation.last, budget as i64))?;
                Ok((if gone < budget { Stage::Done } else { Stage::Journal }, gone.max(1)))
            }
            Stage::Done => Ok((Stage::Done, 0)),
        }
    }
}

/// Takes the ways to a document that is no more out of the tables.
pub(crate) struct Removing<'c> {
    url: CachedStatement<'c>,
    ordinal: CachedStatement<'c>,
    seq: CachedStatement<'c>,
}

impl<'c> Removing<'c> {
    pub fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            url: connection.prepare_cached("DELETE FROM by_url WHERE hash = ?1 AND document = ?2")?,
            ordinal: connection.prepare_cached("DELETE FROM by_ordinal WHERE place = ?1")?,
            seq: connection.prepare_cached("DELETE FROM by_seq WHERE place = ?1")?,
        })
    }

    pub fn all(&mut self, removed: &Removed) -> rusqlite::Result<()> {
        self.url.execute(removed.url)?;
        self.ordinal.execute([removed.ordinal])?;
        self.seq.execute([removed.seq])?;
        Ok(())
    }
}

fn beyond<T>(after: Option<T>) -> Bound<T> {
    after.map_or(Bound::Unbounded, Bound::Excluded)
}

/// Does up to `budget` entries; then says how to go on, and how many there were.
fn go_on<I: Iterator, K>(
    entries: I,
    budget: usize,
    here: impl Fn(Option<K>) -> Stage,
    next: Stage,
    mut each: impl FnMut(I::Item) -> rusqlite::Result<K>,
) -> rusqlite::Result<(Stage, usize)> {
    let (mut last, mut spent) = (None, 0);
    for entry in entries.take(budget) {
        last = Some(each(entry)?);
        spent += 1;
    }
    // A slice that was not filled has met the end.
    let stage = if spent < budget { next } else { here(last) };
    Ok((stage, spent))
}
