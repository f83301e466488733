//! Readers: questions come in from many tasks, and are answered by a few threads with a connection each.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use flare_provider::{ErrorKind, ProviderError, Result};
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use crate::connect;
use crate::error::{self, Work};
use crate::recent::Recent;

/// How many reads run at once at most. More would keep the log from starting over.
const MOST: usize = 4;

/// Bound: so many questions may wait. When full: those who ask wait for their turn.
const WAITING: usize = 1024;

/// What a question may use.
pub(crate) struct Reader {
    pub connection: Connection,
    pub recent: Arc<Recent>,
}

type Question = Box<dyn FnOnce(&mut Reader) + Send>;

/// The threads and what waits for them.
pub(crate) struct Readers {
    desk: Arc<Desk>,
    room: Semaphore,
}

#[derive(Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    bell: Condvar,
}

#[derive(Default)]
struct Waiting {
    questions: VecDeque<Question>,
    ended: bool,
}

impl Readers {
    /// Starts the threads.
    pub fn start(
        database: &Path,
        cache_bytes: usize,
        recent: &Arc<Recent>,
    ) -> Result<(Readers, Vec<JoinHandle<()>>)> {
        let readers = Readers { desk: Arc::default(), room: Semaphore::new(WAITING) };
        let mut threads = Vec::new();
        // More than there are cores would only take them from the writer.
        let count = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, MOST);
        for number in 0..count {
            let connection = connect::reading(database, cache_bytes / count);
            let connection = connection.map_err(|error| error::reading("embedded.open", error.into()))?;
            let mut reader = Reader { connection, recent: recent.clone() };
            let desk = readers.desk.clone();
            let name = format!("flare-reader-{number}");
            let thread = std::thread::Builder::new().name(name).spawn(move || serve(&desk, &mut reader));
            threads.push(thread.map_err(|error| {
                ProviderError::new(ErrorKind::Unavailable, "embedded.open", "no thread to read with")
                    .because(error)
            })?);
        }
        Ok((readers, threads))
    }

    /// Asks, and waits for the answer.
    pub async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        question: impl FnOnce(&mut Reader) -> Work<T> + Send + 'static,
    ) -> Result<T> {
        let closed = || ProviderError::new(ErrorKind::Unavailable, operation, "the store is closed");
        let _room = self.room.acquire().await.map_err(|_closed| closed())?;
        let (answer, answered) = oneshot::channel();
        let ask: Question = Box::new(move |reader| {
            let _nobody_waits = answer.send(question(reader));
        });
        {
            let mut waiting = self.desk.waiting();
            if waiting.ended {
                return Err(closed());
            }
            waiting.questions.push_back(ask);
        }
        self.desk.bell.notify_one();
        match answered.await {
            Ok(answer) => answer.map_err(|trouble| error::reading(operation, trouble)),
            Err(_dropped) => Err(closed()),
        }
    }

    /// Answers no more. Questions that wait are dropped.
    pub fn end(&self) {
        let dropped = {
            let mut waiting = self.desk.waiting();
            waiting.ended = true;
            std::mem::take(&mut waiting.questions)
        };
        self.desk.bell.notify_all();
        drop(dropped);
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.end();
    }
}

impl Desk {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // A question is asked and taken in one step each: there is nothing half-done to find.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(desk: &Desk, reader: &mut Reader) {
    loop {
        let question = {
            let mut waiting = desk.waiting();
            loop {
                if waiting.ended {
                    return;
                }
                match waiting.questions.pop_front() {
                    Some(question) => break question,
                    None => waiting = desk.bell.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                }
            }
        };
        // A question that panics is answered by being dropped; the thread goes on. Whatever it left open in the
        // connection is a snapshot, and the next question could not begin its own.
        if std::panic::catch_unwind(AssertUnwindSafe(|| question(reader))).is_err()
            && !reader.connection.is_autocommit()
            && reader.connection.execute_batch("ROLLBACK").is_err()
        {
            return;
        }
    }
}
