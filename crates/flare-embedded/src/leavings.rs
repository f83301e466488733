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
    /// Bitmaps, standings, kept states and notes of a feed that is gone.
    Feed,
}

/// A note of something to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaving {
    id: i64,
    kind: Kind,
    key: i64,
    /// The last row of the journal that may speak of it: until that is folded, not all of it is in the tables. The journal
    /// never speaks of feeds.
    pub journal: i64,
}

/// What one transaction removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// So many notes, the oldest ones, have nothing left to remove.
    pub finished: usize,
    /// How many rows went, and at least one for each note.
    pub spent: usize,
}

/// Notes, oldest first. Bound: one for each lane, and each feed that had something, of deleted entities; all are removed
/// in the end.
#[derive(Debug, Default)]
pub(crate) struct Leavings {
    notes: VecDeque<Leaving>,
}

/// Leaves a note, as part of the transaction that deletes the entity. A feed that has nothing beside its row, as most
/// have of a subscription with many lanes, leaves none: there is nothing to do for it later.
pub(crate) fn add(desk: &mut Desk<'_>, kind: Kind, key: i64) -> Work<()> {
    let (word, journal) = match kind {
        Kind::Lane => ("lane", desk.journal + i64::from(!desk.done.changes.is_empty())),
        Kind::Feed => ("feed", 0),
    };
    if kind == Kind::Feed && !has_rows(desk.connection, key)? {
        return Ok(());
    }
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

    /// Removes up to about `budget` rows of the oldest ones whose changes are folded, however many of them that takes:
    /// a thousand feeds with a row each are no more work than one with a thousand.
    pub fn remove(&self, connection: &Connection, folded: i64, budget: usize) -> Work<Step> {
        let mut step = Step::default();
        for note in self.notes.iter().take_while(|note| note.journal <= folded) {
            if step.spent >= budget {
                break;
            }
            let (done, spent) = remove(connection, *note, budget - step.spent)?;
            step.spent += spent.max(1);
            if !done {
                break;
            }
            step.finished += 1;
        }
        Ok(step)
    }

    /// So many are removed, and that is durable. Answers whether it may have freed many pages.
    pub fn finish(&mut self, notes: usize) -> bool {
        self.notes.drain(..notes).filter(|note| note.kind == Kind::Lane).count() > 0
    }
}

/// Removes up to `budget` rows. True when nothing is left of it; and how many rows there were.
fn remove(connection: &Connection, leaving: Leaving, budget: usize) -> Work<(bool, usize)> {
    let spent = match leaving.kind {
        Kind::Lane => remove_lane(connection, leaving.key, budget)?,
        Kind::Feed => remove_feed(connection, leaving.key, budget)?,
    };
    // What did not fill its budget has met the end.
    let done = spent < budget;
    if done {
        connection.prepare_cached("DELETE FROM leavings WHERE id = ?1")?.execute([leaving.id])?;
    }
    Ok((done, spent))
}

fn remove_lane(connection: &Connection, lane: i64, budget: usize) -> Work<usize> {
    let (first, last) = (place(lane, 0), place(lane, LAST));
    let mut some = connection.prepare_cached(
        "SELECT o.place, o.document, d.seq, d.url FROM by_ordinal o LEFT JOIN documents d
         ON d.id = o.document AND d.lane = o.place >> 40 WHERE o.place BETWEEN ?1 AND ?2 ORDER BY o.place LIMIT ?3",
    )?;
    let entries = some.query_map((first, last, budget as i64), |row| {
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
    let mut spent = entries.len();
    for sql in [
        "DELETE FROM by_seq WHERE place IN (SELECT place FROM by_seq WHERE place BETWEEN ?1 AND ?2 LIMIT ?3)",
        "DELETE FROM history WHERE place IN (SELECT place FROM history WHERE place BETWEEN ?1 AND ?2 LIMIT ?3)",
    ] {
        if spent < budget {
            spent += connection.prepare_cached(sql)?.execute((first, last, (budget - spent) as i64))?;
        }
    }
    if spent < budget {
        connection.prepare_cached("DELETE FROM lanes WHERE id = ?1")?.execute([lane])?;
    }
    Ok(spent)
}

fn remove_feed(connection: &Connection, feed: i64, budget: usize) -> Work<usize> {
    let mut spent = 0;
    for sql in [
        "DELETE FROM held WHERE feed = ?1 AND chunk IN (SELECT chunk FROM held WHERE feed = ?1 LIMIT ?2)",
        "DELETE FROM standings WHERE feed = ?1 AND ordinal IN
         (SELECT ordinal FROM standings WHERE feed = ?1 LIMIT ?2)",
        "DELETE FROM kept WHERE id IN (SELECT id FROM kept WHERE feed = ?1 LIMIT ?2)",
        "DELETE FROM notes WHERE feed = ?1 AND ordinal IN (SELECT ordinal FROM notes WHERE feed = ?1 LIMIT ?2)",
    ] {
        if spent < budget {
            spent += connection.prepare_cached(sql)?.execute((feed, (budget - spent) as i64))?;
        }
    }
    Ok(spent)
}

/// Whether a feed has anything beside its row.
fn has_rows(connection: &Connection, feed: i64) -> Work<bool> {
    let mut any = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM held WHERE feed = ?1) OR EXISTS (SELECT 1 FROM standings WHERE feed = ?1)
         OR EXISTS (SELECT 1 FROM kept WHERE feed = ?1) OR EXISTS (SELECT 1 FROM notes WHERE feed = ?1)",
    )?;
    Ok(any.query_row([feed], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many feeds that are gone, each with a standing and a note.
    fn with_feeds(feeds: i64) -> (Connection, Leavings) {
        let connection = Connection::open_in_memory().expect("memory");
        for sql in crate::migrations::all() {
            connection.execute_batch(sql).expect("the schema");
        }
        for feed in 1..=feeds {
            let standing = "INSERT INTO standings VALUES (?1, 7, 1, 0, 1, NULL, 0, NULL)";
            connection.execute(standing, [feed]).expect("written");
            let note = "INSERT INTO leavings (kind, key, journal) VALUES ('feed', ?1, 0)";
            connection.execute(note, [feed]).expect("written");
        }
        let leavings = Leavings::load(&connection).expect("read");
        (connection, leavings)
    }

    #[test]
    fn many_small_ones_share_a_transaction_within_its_budget() {
        let (connection, mut leavings) = with_feeds(100);
        let mut turns = 0;
        while leavings.first().is_some() {
            let step = leavings.remove(&connection, 0, 40).expect("removed");
            assert!(step.spent <= 40, "{step:?}");
            assert!(!leavings.finish(step.finished), "feeds free few pages");
            turns += 1;
        }
        // A feed whose last row fills the budget is looked at once more.
        assert_eq!(turns, 3);
        let left = "SELECT (SELECT count(*) FROM standings) + (SELECT count(*) FROM leavings)";
        assert_eq!(connection.query_row(left, [], |row| row.get::<_, i64>(0)), Ok(0));
    }

    #[test]
    fn one_that_waits_for_the_journal_is_not_touched() {
        let (connection, leavings) = with_feeds(3);
        connection.execute("UPDATE leavings SET journal = 9 WHERE id = 2", []).expect("written");
        let waiting = Leavings::load(&connection).expect("read");
        assert_eq!(waiting.remove(&connection, 8, 40).expect("removed"), Step { finished: 1, spent: 1 });
        assert_eq!(leavings.remove(&connection, 9, 40).expect("removed").finished, 3);
    }
}
