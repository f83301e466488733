//! The writer: batches of jobs come in, one transaction goes out for each, and then the answers. It is the only
//! thread that commits, so it needs no locks, and what it remembers is what is durable.

use std::sync::Arc;

use flare_provider::{ErrorKind, ProviderError};
use rusqlite::Connection;

use crate::checkpoint::Checkpoints;
use crate::desk::{Desk, Done};
use crate::documents::commit_all;
use crate::engine::Watch;
use crate::error::{Moment, TransactionFailure, Work, WorkError};
use crate::fold::Fold;
use crate::folder::Whereabouts;
use crate::lanes::Lanes;
use crate::leavings::{Leavings, Step};
use crate::ledger::Deltas;
use crate::queue::{Batch, Queue};
use crate::recent::{self, Recent};

/// How many entries are folded for each change that is committed: a change brings up to four, so a generation is
/// folded before two thirds of the next one are gathered.
const FOLD_PACE: usize = 6;

/// How many rows of what was deleted are removed with each transaction, when there is other work and when not: so many
/// that it ends, and so few that nobody who writes beside it notices.
const REMOVE_BUSY: usize = 64;
const REMOVE_IDLE: usize = 512;

/// How many pages are given back to the file system at a time, once there is nothing else to do.
const RECLAIM: usize = 256;

/// What ends the process: called once, with why.
pub(crate) type Fatal = Arc<dyn Fn(ProviderError) + Send + Sync>;

/// The writer's thread.
pub(crate) struct Writer {
    pub connection: Connection,
    pub database: Whereabouts,
    pub queue: Arc<Queue>,
    pub recent: Arc<Recent>,
    pub witness: Arc<Watch>,
    pub checkpoints: Checkpoints,
    pub fatal: Fatal,
    pub incarnation: u64,
    pub commit_bytes: usize,
    pub fold_after: usize,
    pub memory: Remembered,
}

/// What the writer remembers between transactions.
pub(crate) struct Remembered {
    lanes: Lanes,
    deltas: Deltas,
    last_document: i64,
    /// The version of the catalog that last gave urls to another resource. It need not outlive the process, since no
    /// write does.
    routing: u64,
    /// The last row of the journal.
    journal: i64,
    /// The last row of the journal that is in the tables.
    folded: i64,
    fold: Option<Fold>,
    leavings: Leavings,
    /// Pages are free that could be given back.
    reclaim: bool,
    /// The last attempt to tidy up failed: it is not tried again before something else went well.
    tired: bool,
}

impl Remembered {
    /// Reads what a new life needs to know: little, whatever the size of the database. `highest` is the highest
    /// document that the journal speaks of: if that one is removed, its id must not be given to another before the
    /// journal is folded, or the removal would take the ways to the other one along.
    pub fn load(connection: &Connection, recent: &Recent, highest: i64) -> Work<Remembered> {
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let leavings = Leavings::load(connection)?;
        let (mark, waiting) = {
            let shelf = recent.shelf();
            (shelf.mark(), shelf.generations().map(|generation| generation.changes).sum::<usize>())
        };
        let journal = mark.max(leavings.journal());
        Ok(Remembered {
            lanes: Lanes::default(),
            deltas: Deltas::default(),
            last_document: number("SELECT coalesce(max(id), 0) FROM documents")?.max(highest),
            // No resource has a higher one, and whoever reads the catalog now has all of them.
            routing: number("SELECT coalesce(max(version), 0) FROM entities WHERE kind = 'resource'")? as u64,
            journal,
            folded: if waiting == 0 { journal } else { 0 },
            fold: None,
            leavings,
            reclaim: number("PRAGMA freelist_count")? > number("PRAGMA page_count")? / 4,
            tired: false,
        })
    }

    /// Whether what was deleted can only be removed once more of the journal is folded.
    fn waits_for_fold(&self) -> bool {
        self.leavings.first().is_some_and(|leaving| leaving.journal > self.folded)
    }

    /// Whether there is something to tidy up while nobody asks for anything.
    fn untidy(&self) -> bool {
        !self.tired && (self.reclaim || self.leavings.first().is_some())
    }
}

/// What a transaction leaves to be done in memory.
struct Turn {
    done: Done,
    fold: Option<Fold>,
    removed: Step,
}

impl Writer {
    /// Works until the queue has ended and is empty.
    pub fn run(mut self) -> Writer {
        let mut batch = Batch::default();
        // Declared after the batch, and so dropped before it: whoever waits hears why, and not only that it is over.
        let _alarm = Alarm { queue: self.queue.clone(), fatal: self.fatal.clone() };
        while self.queue.take(&mut batch, self.commit_bytes, !self.memory.untidy()) {
            let idle = batch.is_empty();
            match self.transact(&mut batch) {
                Ok(turn) => self.succeeded(&mut batch, turn, idle),
                Err(failure) => self.failed(&mut batch, &failure, idle),
            }
        }
        self
    }

    /// One transaction, with everything that was taken.
    fn transact(&mut self, batch: &mut Batch) -> Result<Turn, TransactionFailure> {
        if let Some(failure) = self.queue.broken() {
            return Err(failure.clone());
        }
        if self.database.is_lost() {
            return Err(TransactionFailure::lost());
        }
        let statement = |error| TransactionFailure::of(error, Moment::Statement);
        let run =
            |sql: &str, moment| match self.connection.prepare_cached(sql).and_then(|mut run| run.execute([]))
            {
                Ok(_) => Ok(()),
                Err(error) => Err(TransactionFailure::of(error, moment)),
            };
        run("BEGIN IMMEDIATE", Moment::Statement)?;
        let turn = work(&self.connection, &mut self.memory, &self.recent, self.incarnation, batch);
        let turn = turn.map_err(|trouble| match trouble {
            WorkError::Store(error) => statement(error),
            WorkError::Refused(_) => {
                TransactionFailure::new(ErrorKind::Internal, "a refusal outside of a job")
            }
        })?;
        run("COMMIT", Moment::Sync)?;
        Ok(turn)
    }

    /// The transaction is durable: memory follows, the witness hears of it, and then everyone who waits.
    fn succeeded(&mut self, batch: &mut Batch, turn: Turn, idle: bool) {
        let memory = &mut self.memory;
        memory.lanes.commit();
        memory.deltas.commit();
        memory.tired = false;
        let Done { changes, documents, leavings, freed, routing, .. } = turn.done;
        memory.routing = routing.unwrap_or(memory.routing);
        memory.reclaim |= freed;
        memory.leavings.extend(leavings);
        if !changes.is_empty() {
            memory.journal += 1;
            self.recent.commit(memory.journal, &changes);
        }
        if !documents.is_empty()
            && let Some(witness) = self.witness.get()
        {
            witness.committed(documents);
        }
        batch.commits.drain(..).for_each(|commit| commit.answer(None));
        batch.jobs.drain(..).for_each(|job| job.answer(None));
        memory.fold = turn.fold;
        self.tidy(turn.removed, idle);
        if let Err(failure) = self.checkpoints.after_commit(&self.connection) {
            self.broke(failure);
        }
    }

    /// Keeps what was folded and removed, now that it is durable, and looks for what is next.
    fn tidy(&mut self, removed: Step, idle: bool) {
        let memory = &mut self.memory;
        if let Some(fold) = memory.fold.take_if(|fold| fold.is_done()) {
            memory.folded = fold.last();
            self.recent.folded();
        }
        memory.reclaim |= memory.leavings.finish(removed.finished);
        if removed.spent == 0 && idle && memory.reclaim {
            match reclaim(&self.connection) {
                Ok(left) => memory.reclaim = left > 0,
                Err(error) => {
                    memory.reclaim = false;
                    let failure = TransactionFailure::of(error, Moment::Sync);
                    if failure.fatal {
                        broke(&self.queue, &self.fatal, failure);
                    }
                }
            }
        }
        if memory.fold.is_none() {
            let waits = memory.waits_for_fold();
            memory.fold = self.recent.rotate(if waits { 1 } else { self.fold_after }).map(Fold::new);
        }
    }

    /// The transaction failed: nothing of it is left, on the disk or in memory, and everyone hears why.
    fn failed(&mut self, batch: &mut Batch, failure: &TransactionFailure, idle: bool) {
        // SQLite has rolled back by itself after some errors, and says so.
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            self.broke(TransactionFailure::of(error, Moment::Sync));
        }
        self.memory.lanes.roll_back();
        self.memory.deltas.roll_back();
        self.memory.tired = idle;
        if failure.fatal {
            self.broke(failure.clone());
        }
        batch.commits.drain(..).for_each(|commit| commit.answer(Some(failure)));
        batch.jobs.drain(..).for_each(|job| job.answer(Some(failure)));
    }

    /// What the disk has is unknown from now on: nothing is written any more, and the process is to end.
    fn broke(&self, failure: TransactionFailure) {
        broke(&self.queue, &self.fatal, failure);
    }
}

fn broke(queue: &Queue, fatal: &Fatal, failure: TransactionFailure) {
    let told = failure.told("embedded.commit");
    if queue.break_down(failure) {
        fatal(told);
    }
}

/// Goes off when the writer's thread panics: nobody else would say it.
struct Alarm {
    queue: Arc<Queue>,
    fatal: Fatal,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            broke(
                &self.queue,
                &self.fatal,
                TransactionFailure::new(ErrorKind::Internal, "the writer has panicked"),
            );
            self.queue.abandon();
        }
    }
}

/// Everything that one transaction does, between its begin and its commit.
fn work(
    connection: &Connection,
    memory: &mut Remembered,
    recent: &Recent,
    incarnation: u64,
    batch: &mut Batch,
) -> Work<Turn> {
    let idle = batch.is_empty();
    let mut desk = Desk {
        connection,
        lanes: &mut memory.lanes,
        deltas: &mut memory.deltas,
        recent,
        journal: memory.journal,
        last_document: &mut memory.last_document,
        incarnation,
        routing: memory.routing,
        done: Done::default(),
    };
    commit_all(&mut desk, &mut batch.commits)?;
    for job in &mut batch.jobs {
        job.run(&mut desk)?;
    }
    let done = desk.done;
    memory.lanes.write(connection)?;
    if !done.changes.is_empty() {
        let mut insert =
            connection.prepare_cached("INSERT INTO journal (number, changes) VALUES (?1, ?2)")?;
        insert.execute((memory.journal + 1, recent::encode(&done.changes)))?;
    }
    let mut fold = memory.fold.clone();
    if let Some(fold) = &mut fold {
        let tidying = if memory.waits_for_fold() { REMOVE_IDLE } else { 0 };
        fold.step(connection, FOLD_PACE * done.changes.len() + tidying)?;
    }
    let budget = if idle { REMOVE_IDLE } else { REMOVE_BUSY };
    let removed = memory.leavings.remove(connection, memory.folded, budget)?;
    Ok(Turn { done, fold, removed })
}

/// Gives some free pages back to the file system, in a transaction of its own; answers how many are left.
fn reclaim(connection: &Connection) -> rusqlite::Result<i64> {
    connection.execute_batch(&format!("PRAGMA incremental_vacuum({RECLAIM})"))?;
    connection.query_row("PRAGMA freelist_count", [], |row| row.get(0))
}
