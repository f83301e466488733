//! Checkpoints: the write-ahead log comes in, and goes into the database file, off the path of commits.
//!
//! A log that starts over is written in place, and that is much cheaper to sync than one that grows. It can start
//! over once all of it is in the database file and no reader is inside it. A thread of its own copies and syncs,
//! which takes long, while commits go on; what they add meanwhile the writer copies between two commits, which
//! is little. The next commit then starts the log over.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use flare_provider::{ErrorKind, ProviderError};
use rusqlite::Connection;

use crate::connect::{self, PAGE_BYTES};
use crate::error::{self, Moment, TransactionFailure};

/// How large the log grows before it is copied. Measured: with twice as much, random updates of a million documents are
/// up to a tenth faster and the slowest commits up to half as long again; new documents do not mind.
const SOFT_BYTES: usize = 4 << 20;

/// How often the thread copies what was added while it copied, before it leaves the rest to the writer.
const PASSES: usize = 3;

/// So many pages may be left to the writer.
const REST: i64 = 64;

/// How long the writer waits for readers to leave the log when it has grown too large. Reads take less.
const PATIENCE: Duration = Duration::from_millis(60);

/// What a checkpoint answers: a failure means that the disk failed to sync.
type Synced = Result<(), TransactionFailure>;

/// The writer's side.
pub(crate) struct Checkpoints {
    /// How many pages are in the log.
    pages: Arc<AtomicUsize>,
    /// At so many the thread is asked.
    ask_at: usize,
    /// At so many the writer waits for readers, and truncates the log.
    truncate_at: usize,
    hard: usize,
    post: Arc<Post>,
}

/// Between the writer and the thread.
#[derive(Default)]
struct Post {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
enum State {
    #[default]
    Idle,
    /// The thread is to copy, or is at it.
    Asked,
    /// The thread has copied, and this came of it.
    Copied(Synced),
    Ended,
}

impl Checkpoints {
    /// Starts the thread, and begins to watch the log of the writer's connection.
    pub fn start(
        database: &Path,
        writer: &mut Connection,
        checkpoint_bytes: usize,
    ) -> Result<(Checkpoints, JoinHandle<()>), ProviderError> {
        let opening = |error: rusqlite::Error| error::reading("embedded.open", error.into());
        let pages = Arc::new(AtomicUsize::new(0));
        let gauge = pages.clone();
        let hook = move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            gauge.store(usize::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        };
        writer.wal_hook(Some(hook)).map_err(opening)?;
        let connection = connect::writing(database, 1 << 20).map_err(opening)?;
        let post = Arc::new(Post::default());
        let for_thread = post.clone();
        let thread = std::thread::Builder::new()
            .name("flare-checkpoint".to_owned())
            .spawn(move || for_thread.serve(&connection))
            .map_err(|error| {
                let detail = "no thread to checkpoint with";
                ProviderError::new(ErrorKind::Unavailable, "embedded.open", detail).because(error)
            })?;
        let hard = (checkpoint_bytes / PAGE_BYTES).max(1);
        let soft = (SOFT_BYTES / PAGE_BYTES).min(hard);
        Ok((Checkpoints { pages, ask_at: soft, truncate_at: hard, hard, post }, thread))
    }

    /// After each commit: keeps the log short.
    pub fn after_commit(&mut self, writer: &Connection) -> Synced {
        let pages = self.pages.load(Ordering::Relaxed);
        let soft = (SOFT_BYTES / PAGE_BYTES).min(self.hard);
        let copied = self.post.copied();
        if pages < soft {
            // It has started over.
            (self.ask_at, self.truncate_at) = (soft, self.hard);
            return copied.unwrap_or(Ok(()));
        }
        if let Some(copied) = copied {
            copied?;
            // If a reader is in the way the log goes on growing; it is tried again after some more of it.
            self.ask_at = pages + soft / 2;
            checkpoint(writer, "PASSIVE")?;
        } else if pages >= self.truncate_at {
            self.truncate_at = pages + soft;
            self.truncate(writer)?;
        } else if pages >= self.ask_at {
            self.post.ask();
        }
        Ok(())
    }

    /// Waits a little for readers to leave, copies everything and makes the log empty.
    pub fn truncate(&self, writer: &Connection) -> Synced {
        let patience =
            |time| writer.busy_timeout(time).map_err(|error| TransactionFailure::of(error, Moment::Sync));
        patience(PATIENCE)?;
        let truncated = checkpoint(writer, "TRUNCATE");
        patience(connect::PATIENCE)?;
        truncated.map(|_| ())
    }

    /// Lets the thread end.
    pub fn end(&self) {
        *self.post.state() = State::Ended;
        self.post.bell.notify_one();
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        // Also when the writer's thread has panicked, and nobody else is left to say it.
        self.end();
    }
}

impl Post {
    fn state(&self) -> MutexGuard<'_, State> {
        // The state is replaced whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came of the last copying, once.
    fn copied(&self) -> Option<Synced> {
        let mut state = self.state();
        if !matches!(*state, State::Copied(_)) {
            return None;
        }
        match std::mem::take(&mut *state) {
            State::Copied(copied) => Some(copied),
            _ => None,
        }
    }

    /// Asks for the next one, unless it is under way.
    fn ask(&self) {
        let mut state = self.state();
        if let State::Idle = *state {
            *state = State::Asked;
            drop(state);
            self.bell.notify_one();
        }
    }

    fn serve(&self, connection: &Connection) {
        loop {
            {
                let mut state = self.state();
                loop {
                    match *state {
                        State::Asked => break,
                        State::Ended => return,
                        _ => state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner),
                    }
                }
            }
            let copied = copy(connection);
            let mut state = self.state();
            if let State::Asked = *state {
                *state = State::Copied(copied);
            }
        }
    }
}

/// Copies what is in the log, and what was added meanwhile, until little is left.
fn copy(connection: &Connection) -> Synced {
    let mut before = 0;
    for _ in 0..PASSES {
        let pages = checkpoint(connection, "PASSIVE")?;
        if pages - before <= REST {
            break;
        }
        before = pages;
    }
    Ok(())
}

/// One checkpoint; answers how many pages the log has. A full disk is no failure here: the log stays, and the next
/// checkpoint tries again.
fn checkpoint(connection: &Connection, mode: &str) -> Result<i64, TransactionFailure> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let done = connection.prepare_cached(&sql).and_then(|mut run| run.query_row([], |row| row.get(1)));
    match done.map_err(|error| TransactionFailure::of(error, Moment::Sync)) {
        Ok(pages) => Ok(pages),
        Err(failure) if failure.kind == ErrorKind::Unavailable => {
            tracing::warn!(error = %failure.told("embedded.checkpoint"), "checkpoint failed, will try again");
            Ok(0)
        }
        Err(failure) => Err(failure),
    }
}
