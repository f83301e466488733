//! The default engine: SQLite in a folder. Calls of the contracts come in from many tasks; one writer thread turns
//! whatever waits into one transaction, synced once, and a few readers answer the rest from snapshots.
//!
//! ```text
//! commit, write, create ... → queue.rs → writer.rs → one transaction, one fsync → witness → answers
//!                                           │ documents/ ledger/ catalog/ do their part on the desk (desk.rs)
//!                                           │ fold.rs, leavings.rs tidy up within the same transactions
//!                                           └ checkpoint.rs keeps the log short, off that path
//! get, scan, standings ...  → readers.rs → snapshot.rs + recent/
//! a store, open or closed   → audit/ → what is wrong in it, in words
//!                           → upkeep/backup.rs → a copy of it, and one that is put in its place
//! ```
//! `migrations/` has the schema and says why it is as it is. What is absent: retries, timing and counting, which
//! are a wrapper's, and sleeping.

mod acts;
mod audit;
mod catalog;
mod checkpoint;
mod connect;
mod desk;
mod documents;
mod engine;
mod error;
mod fold;
mod folder;
mod intake;
mod job;
mod lanes;
mod leavings;
mod ledger;
mod meta;
pub mod migrations;
mod place;
mod queue;
mod readers;
mod recent;
mod snapshot;
pub mod upkeep;
mod writer;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use flare_provider::{ErrorKind, ProviderError, Result, Store};

pub use audit::{Finding, audit};
pub use upkeep::backup::{copy, place, stored};
pub use upkeep::transfer;

use checkpoint::Checkpoints;
use engine::{Engine, Watch};
use folder::{Folder, Whereabouts};
use queue::Queue;
use readers::Readers;
use recent::Recent;
use writer::{Remembered, Writer};

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// The folder of the database. It is made where it is missing.
    pub path: PathBuf,
    /// Memory for pages of the database, over all connections.
    pub cache_bytes: usize,
    /// How much work may wait for the writer. When full, documents are refused as `Unavailable`, and the rest waits.
    pub queue_bytes: usize,
    /// How many bytes of documents go into one transaction at most.
    pub commit_bytes: usize,
    /// How large the write-ahead log may become before it is truncated.
    pub checkpoint_bytes: usize,
    /// Called once when nothing can be relied on any more (a failed fsync): the process should end.
    pub fatal: Arc<dyn Fn(ProviderError) + Send + Sync>,
    /// How many changes are gathered before they are folded. For tests, which want to see it soon.
    #[doc(hidden)]
    pub fold_after: usize,
}

impl Options {
    /// The usual sizes. A fatal failure is only logged.
    pub fn new(path: impl Into<PathBuf>) -> Options {
        Options {
            path: path.into(),
            cache_bytes: 32 << 20,
            queue_bytes: 64 << 20,
            commit_bytes: 4 << 20,
            checkpoint_bytes: 256 << 20,
            fatal: Arc::new(|error| tracing::error!(%error, "the store has failed")),
            fold_after: recent::GENERATION,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("path", &self.path)
            .field("cache_bytes", &self.cache_bytes)
            .field("queue_bytes", &self.queue_bytes)
            .field("commit_bytes", &self.commit_bytes)
            .field("checkpoint_bytes", &self.checkpoint_bytes)
            .finish_non_exhaustive()
    }
}

/// An open store. Dropping it closes it.
pub struct Embedded {
    engine: Arc<Engine>,
    running: Mutex<Option<Running>>,
}

/// What ends when the store is closed.
struct Running {
    writer: JoinHandle<Writer>,
    checkpointer: JoinHandle<()>,
    readers: Vec<JoinHandle<()>>,
    /// Let go of last.
    _folder: Folder,
}

impl Embedded {
    /// Takes the folder, brings the database to the present shape, and starts the threads.
    pub fn open(options: Options) -> Result<Embedded> {
        const OPERATION: &str = "embedded.open";
        let folder = Folder::take(&options.path)?;
        let database = folder.database();
        // The writer has most of the cache: what it changes it reads first. Readers read what is behind.
        let (writers, readers) = (options.cache_bytes / 4 * 3, options.cache_bytes / 4);
        let mut connection = migrations::open(&database, writers)?;
        let load = || {
            let incarnation = meta::get(&connection, "incarnation")? as u64;
            let sequences_from = meta::find(&connection, "sequences_from")?.unwrap_or(0) as u64;
            let (recent, highest) = Recent::load(&connection)?;
            let memory = Remembered::load(&connection, &recent, highest)?;
            Ok((incarnation, sequences_from, Arc::new(recent), memory))
        };
        let (incarnation, sequences_from, recent, memory) =
            load().map_err(|trouble| error::reading(OPERATION, trouble))?;
        let (checkpoints, checkpointer) =
            Checkpoints::start(&database, &mut connection, options.checkpoint_bytes)?;
        let (readers, reading) = Readers::start(&database, readers, &recent)?;
        let whereabouts = Whereabouts::of(&database).map_err(|error| {
            ProviderError::new(ErrorKind::Unavailable, OPERATION, "the database is not there").because(error)
        })?;
        let queue = Arc::new(Queue::new(options.queue_bytes));
        let witness = Arc::new(Watch::default());
        let writer = Writer {
            connection,
            database: whereabouts,
            queue: queue.clone(),
            recent,
            witness: witness.clone(),
            checkpoints,
            fatal: options.fatal,
            incarnation,
            commit_bytes: options.commit_bytes,
            fold_after: options.fold_after,
            memory,
        };
        let writer = std::thread::Builder::new().name("flare-writer".to_owned()).spawn(|| writer.run());
        let writer = writer.map_err(|error| {
            ProviderError::new(ErrorKind::Unavailable, OPERATION, "no thread to write with").because(error)
        })?;
        let running = Running { writer, checkpointer, readers: reading, _folder: folder };
        let engine = Arc::new(Engine { queue, readers, witness, incarnation, sequences_from });
        Ok(Embedded { engine, running: Mutex::new(Some(running)) })
    }

    /// The engine through its contracts. After `close` every call is `Unavailable`.
    pub fn store(&self) -> Store {
        let engine = &self.engine;
        Store {
            catalog: engine.clone(),
            documents: engine.clone(),
            ledger: engine.clone(),
            acts: engine.clone(),
            intake: engine.clone(),
        }
    }

    /// Does what waits, copies the log into the database, and ends the threads. Blocks until that is done; a second
    /// call finds nothing to do.
    pub fn close(&self) {
        self.engine.queue.end();
        self.stop(true);
    }

    /// Stops as a killed process would: what waits is dropped, nothing is copied. For tests of crashes.
    #[doc(hidden)]
    pub fn abandon(&self) {
        self.engine.queue.abandon();
        self.stop(false);
    }

    /// Lets the database have no more than so many pages beyond those it has, or any number again. For tests of a
    /// full disk.
    #[doc(hidden)]
    pub async fn limit_pages(&self, more: Option<u32>) -> Result<()> {
        let limit = move |desk: &mut desk::Desk<'_>| {
            let pages: u32 = desk.connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            let most = more.map_or(u32::MAX - 1, |more| pages + more);
            desk.connection.query_row(&format!("PRAGMA max_page_count = {most}"), [], |_| Ok(()))?;
            Ok(())
        };
        self.engine.queue.work("embedded.limit_pages", 1, limit).await
    }

    fn stop(&self, cleanly: bool) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Running { writer, checkpointer, readers, _folder }) = running else { return };
        let writer = writer.join();
        self.engine.readers.end();
        for reader in readers {
            let _panicked = reader.join();
        }
        let Ok(writer) = writer else { return };
        writer.checkpoints.end();
        let _panicked = checkpointer.join();
        if cleanly
            && writer.queue.broken().is_none()
            && let Err(failure) = writer.checkpoints.truncate(&writer.connection)
        {
            tracing::warn!(error = %failure.told("embedded.close"), "the log could not be copied at the end");
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.close();
    }
}
