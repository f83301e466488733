//! Leavings: what belonged to a deleted resource or subscription comes in as a note, and goes out of the database
//! slice by slice, between other work. The notes are rows of their own, so a restart goes on where it was.

use std::collections::VecDeque;

use rusqlite::Connection;

use crate::desk::Desk;
use crate::error::Work;
use crate::fold::Removing;
use crate::place::{LAST, place, url_key};
use crate::recent::Removed;

/// What is left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The documents of a lane that is gone.
    Lane,
    /// Bitmaps, standings and kept states of a feed that is gone.
    Feed,
}

/// A note of something to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    id: i64,
    kind: Kind,
    key: i64,
    /// The last row of the journal that may speak of it: until that is folded, not all of it is in the tables.
    pub journal: i64,
}

/// Notes, oldest first. Bound: one for each lane and feed of deleted entities; all are removed in the end.
#[derive(Debug, Default)]
pub(crate) struct Leavings {
    notes: VecDeque<Leaving>,
}

/// Leaves a note, as part of the transaction that deletes the entity.
pub(crate) fn add(desk: &mut Desk<'_>, kind: Kind, key: i64) -> Work<()> {
    let journal = desk.journal + i64::from(!desk.done.changes.is_empty());
    let word = match kind {
        Kind::Lane => "lane",
        Kind::Feed => "feed",
    };
    let mut insert =
        desk.connection.prepare_cached("INSERT INTO leavings (kind, key, journal) VALUES (?1, ?2, ?3)")?;
    let id = insert.insert((word, key, journal))?;
    desk.done.leavings.push(Leaving { id, kind, key, journal });
    Ok(())
}

impl Leavings {
    /// What an earlier life left.
    pub fn load(connection: &Connection) -> rusqlite::Result<Leavings> {
        let mut all = connection.prepare("SELECT id, kind, key, journal FROM leavings ORDER BY id")?;
        let notes = all.query_map([], |row| {
            let kind = if row.get_ref(1)?.as_str()? == "lane" { Kind::Lane } else { Kind::Feed };
            Ok(Leaving { id: row.get(0)?, kind, key: row.get(2)?, journal: row.get(3)? })
        })?;
        Ok(Leavings { notes: notes.collect::<rusqlite::Result<_>>()? })
    }

    /// The next one.
    pub fn first(&self) -> Option<Leaving> {
        self.notes.front().copied()
    }

    /// The highest row of the journal that any of them waits for.
    pub fn journal(&self) -> i64 {
        self.notes.iter().map(|note| note.journal).max().unwrap_or(0)
    }

    /// Notes of a transaction that is durable.
    pub fn extend(&mut self, notes: Vec<Leaving>) {
        self.notes.extend(notes);
    }

    /// The first one is removed, and that is durable. Answers whether it may have freed many pages.
    pub fn finish(&mut self) -> bool {
        self.notes.pop_front().is_some_and(|note| note.kind == Kind::Lane)
    }
}

/// Removes up to about `budget` rows. True when nothing is left of it.
pub(crate) fn remove(connection: &Connection, leaving: Leaving, budget: usize) -> Work<bool> {
    let done = match leaving.kind {
        Kind::Lane => remove_lane(connection, leaving.key, budget)?,
        Kind::Feed => remove_feed(connection, leaving.key, budget)?,
    };
    if done {
        connection.prepare_cached("DELETE FROM leavings WHERE id = ?1")?.execute([leaving.id])?;
    }
    Ok(done)
}

fn remove_lane(connection: &Connection, lane: i64, budget: usize) -> Work<bool> {
    let bounds = (place(lane, 0), place(lane, LAST), budget as i64);
    let mut some = connection.prepare_cached(
        "SELECT o.place, o.document, d.seq, d.url FROM by_ordinal o LEFT JOIN documents d
         ON d.id = o.document AND d.lane = o.place >> 40 WHERE o.place BETWEEN ?1 AND ?2 ORDER BY o.place LIMIT ?3",
    )?;
    let entries = some.query_map(bounds, |row| {
        let (ordinal, document) = (row.get(0)?, row.get(1)?);
        let Some(seq) = row.get::<_, Option<i64>>(2)? else { return Ok((ordinal, None)) };
        let url = (url_key(row.get_ref(3)?.as_str()?), document);
        Ok((ordinal, Some(Removed { url, ordinal, seq: place(lane, seq as u64) })))
    })?;
    let entries = entries.collect::<rusqlite::Result<Vec<(i64, Option<Removed>)>>>()?;
    let mut delete = connection.prepare_cached("DELETE FROM documents WHERE id = ?1")?;
    let mut dangling = connection.prepare_cached("DELETE FROM by_ordinal WHERE place = ?1")?;
    let mut removing = Removing::new(connection)?;
    for (ordinal, removed) in &entries {
        match removed {
            Some(removed) => {
                delete.execute([removed.url.1])?;
                removing.all(removed)?;
            }
            None => {
                dangling.execute([ordinal])?;
            }
        }
    }
    if entries.len() == budget {
        return Ok(false);
    }
    let mut stale = connection.prepare_cached(
        "DELETE FROM by_seq WHERE place IN (SELECT place FROM by_seq WHERE place BETWEEN ?1 AND ?2 LIMIT ?3)",
    )?;
    if stale.execute(bounds)? == budget {
        return Ok(false);
    }
    let mut history = connection.prepare_cached(
        "DELETE FROM history WHERE place IN (SELECT place FROM history WHERE place BETWEEN ?1 AND ?2 LIMIT ?3)",
    )?;
    if history.execute(bounds)? == budget {
        return Ok(false);
    }
    connection.prepare_cached("DELETE FROM lanes WHERE id = ?1")?.execute([lane])?;
    Ok(true)
}

fn remove_feed(connection: &Connection, feed: i64, budget: usize) -> Work<bool> {
    for sql in [
        "DELETE FROM held WHERE feed = ?1 AND chunk IN (SELECT chunk FROM held WHERE feed = ?1 LIMIT ?2)",
        "DELETE FROM standings WHERE feed = ?1 AND ordinal IN
         (SELECT ordinal FROM standings WHERE feed = ?1 LIMIT ?2)",
        "DELETE FROM kept WHERE id IN (SELECT id FROM kept WHERE feed = ?1 LIMIT ?2)",
    ] {
        if connection.prepare_cached(sql)?.execute((feed, budget as i64))? == budget {
            return Ok(false);
        }
    }
    Ok(true)
}
