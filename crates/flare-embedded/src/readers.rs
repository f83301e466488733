//! Readers: questions come in from many tasks, and are answered by a few threads with a connection each.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use flare_provider::{ErrorKind, ProviderError, Result};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::connect;
use crate::error::{self, Work};
use crate::recent::Recent;

/// How many reads run at once at most. More would keep the log from starting over.
const MOST: usize = 4;

/// Bound: so many questions may wait, also of those who have stopped to listen: a question has its place until it is
/// answered or dropped. When full: those who ask wait for their turn.
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
    room: Arc<Semaphore>,
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
        let readers = Readers { desk: Arc::default(), room: Arc::new(Semaphore::new(WAITING)) };
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
        let room: OwnedSemaphorePermit =
            self.room.clone().acquire_owned().await.map_err(|_closed| closed())?;
        let (answer, answered) = oneshot::channel();
        let ask: Question = Box::new(move |reader| {
            // Whoever asked may have left meanwhile: then nothing is read for nobody.
            let answered = (!answer.is_closed()).then(|| question(reader));
            // Room first: whoever is answered may come again at once.
            drop(room);
            if let Some(answered) = answered {
                let _nobody_waits = answer.send(answered);
            }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_question_keeps_its_place_when_the_one_who_asked_has_left() {
        let folder = tempfile::TempDir::new().expect("a temporary folder");
        let database = folder.path().join("flare.db");
        let connection = crate::migrations::open(&database, 1 << 20).expect("a fresh database");
        let recent = Arc::new(Recent::load(&connection).expect("an empty journal").0);
        let (readers, threads) = Readers::start(&database, 1 << 20, &recent).expect("started");
        let readers = Arc::new(readers);
        // Every thread is kept busy until the test lets go.
        let (let_go, gates): (Vec<_>, Vec<_>) = threads.iter().map(|_| mpsc::channel::<()>()).unzip();
        let begun = Arc::new(tokio::sync::Semaphore::new(0));
        let mut busy = tokio::task::JoinSet::new();
        for gate in gates {
            let (readers, begun) = (readers.clone(), begun.clone());
            let wait = move |_: &mut Reader| {
                begun.add_permits(1);
                let _let_go = gate.recv();
                Ok(())
            };
            busy.spawn(async move { readers.read("test", wait).await });
        }
        let _all = begun.acquire_many(threads.len() as u32).await.expect("nobody closes it");

        let run = Arc::new(AtomicUsize::new(0));
        for _ in 0..10 {
            let ran = run.clone();
            let asked = readers.read("test", move |_| Ok(ran.fetch_add(1, Ordering::SeqCst)));
            // Asked and not waited for.
            let asked = std::pin::pin!(asked);
            assert!(polled_once(asked).await.is_none());
        }
        assert_eq!(readers.desk.waiting().questions.len(), 10);
        let taken = WAITING - readers.room.available_permits();
        assert_eq!(taken, 10 + threads.len(), "as many places are taken as questions wait or are answered");

        drop(let_go);
        busy.join_all().await.into_iter().for_each(|answer| answer.expect("answered"));
        readers.read("test", |_| Ok(())).await.expect("answered");
        let all = readers.room.acquire_many(WAITING as u32).await.expect("open");
        assert_eq!(run.load(Ordering::SeqCst), 0, "nobody was there to hear it");
        drop(all);
        readers.end();
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
    }

    /// What a future answers if it is asked once.
    async fn polled_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match future.as_mut().poll(context) {
                std::task::Poll::Ready(answer) => Some(answer),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
