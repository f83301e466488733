//! The queue before the writer: jobs come in from many tasks, and the writer takes whatever waits.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use flare_model::document::{Intent, Write};
use flare_provider::{ErrorKind, ProviderError, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::desk::Desk;
use crate::error::{TransactionFailure, Work};
use crate::job::{Answered, Commit, Job, Task};

/// What a write takes beside its url and content, about: a row's numbers and the entries that lead to it.
const WRITE_BYTES: usize = 128;

/// Bound: `queue_bytes` of work, from when it is asked for until it is answered. When full: a batch of documents
/// is refused as `Unavailable` at once, since an origin can come again; records and catalog changes wait for
/// room, in order.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    bell: Condvar,
    room: Arc<Semaphore>,
    /// A job that is larger than the queue takes all of it.
    bound: u32,
    /// Why nothing can be done any more, if it is not that the store was closed.
    broken: OnceLock<TransactionFailure>,
}

#[derive(Default)]
struct Waiting {
    commits: VecDeque<Commit>,
    jobs: VecDeque<Box<dyn Job>>,
    /// The writer sleeps and wants to be woken: without this, every job would pay for a wake-up.
    asleep: bool,
    ended: bool,
}

/// What the writer has taken: one transaction.
#[derive(Default)]
pub(crate) struct Batch {
    pub commits: Vec<Commit>,
    pub jobs: Vec<Box<dyn Job>>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.commits.is_empty() && self.jobs.is_empty()
    }
}

impl Queue {
    pub fn new(bytes: usize) -> Queue {
        let bound = bytes.clamp(1, u32::MAX as usize >> 1) as u32;
        Queue {
            waiting: Mutex::default(),
            bell: Condvar::new(),
            room: Arc::new(Semaphore::new(bound as usize)),
            bound,
            broken: OnceLock::new(),
        }
    }

    /// Adds a batch of documents, if there is room.
    pub fn push_commit(&self, batch: Vec<Write>) -> Result<Answered> {
        const OPERATION: &str = "documents.commit";
        let bytes = self.permits(batch.iter().map(write_bytes).sum());
        let room = match self.room.clone().try_acquire_many_owned(bytes) {
            Ok(room) => room,
            Err(TryAcquireError::Closed) => return Err(self.ended(OPERATION)),
            Err(TryAcquireError::NoPermits) => {
                return Err(ProviderError::new(ErrorKind::Unavailable, OPERATION, "too much is waiting"));
            }
        };
        let (commit, answered) = Commit::new(batch, room);
        self.push(OPERATION, |waiting| waiting.commits.push_back(commit))?;
        Ok(answered)
    }

    /// Adds other work, once there is room, and waits until it is durable.
    pub async fn work<T: Send + 'static>(
        &self,
        operation: &'static str,
        bytes: usize,
        work: impl FnOnce(&mut Desk<'_>) -> Work<T> + Send + 'static,
    ) -> Result<T> {
        let room: OwnedSemaphorePermit = match self.room.clone().acquire_many_owned(self.permits(bytes)).await
        {
            Ok(room) => room,
            Err(_closed) => return Err(self.ended(operation)),
        };
        let (task, answered) = Task::new(operation, room, work);
        self.push(operation, |waiting| waiting.jobs.push_back(Box::new(task)))?;
        answered.await.unwrap_or_else(|_dropped| Err(self.ended(operation)))
    }

    fn permits(&self, bytes: usize) -> u32 {
        u32::try_from(bytes).unwrap_or(u32::MAX).clamp(1, self.bound)
    }

    fn push(&self, operation: &'static str, add: impl FnOnce(&mut Waiting)) -> Result<()> {
        let mut waiting = self.waiting();
        if waiting.ended {
            drop(waiting);
            return Err(self.ended(operation));
        }
        add(&mut waiting);
        let asleep = std::mem::take(&mut waiting.asleep);
        drop(waiting);
        if asleep {
            self.bell.notify_one();
        }
        Ok(())
    }

    /// Takes what waits: up to `bytes` of documents, and as much again of other work, so that neither keeps the
    /// other waiting. With `wait` it sleeps until there is something. False: there is nothing, and never will be.
    pub fn take(&self, batch: &mut Batch, bytes: usize, wait: bool) -> bool {
        let mut waiting = self.waiting();
        while wait && waiting.commits.is_empty() && waiting.jobs.is_empty() && !waiting.ended {
            waiting.asleep = true;
            waiting = self.bell.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.asleep = false;
        drain(&mut waiting.commits, &mut batch.commits, bytes, Commit::bytes);
        drain(&mut waiting.jobs, &mut batch.jobs, bytes, |job| job.bytes());
        !(waiting.ended && batch.is_empty())
    }

    /// Takes no more in. What waits is still done.
    pub fn end(&self) {
        self.waiting().ended = true;
        self.room.close();
        self.bell.notify_one();
    }

    /// Takes no more in, and drops what waits: its callers hear that the engine has stopped.
    pub fn abandon(&self) {
        self.end();
        let dropped = {
            let mut waiting = self.waiting();
            (std::mem::take(&mut waiting.commits), std::mem::take(&mut waiting.jobs))
        };
        drop(dropped);
    }

    /// Takes no more in, and says why: what is on the disk is unknown, or the engine has a fault. The first reason
    /// stays. True when it is this one.
    pub fn break_down(&self, failure: TransactionFailure) -> bool {
        let first = self.broken.set(failure).is_ok();
        self.end();
        first
    }

    /// Why nothing can be done any more.
    pub fn broken(&self) -> Option<&TransactionFailure> {
        self.broken.get()
    }

    /// What everyone hears once the engine has stopped.
    pub fn ended(&self, operation: &'static str) -> ProviderError {
        match self.broken() {
            Some(failure) => failure.told(operation),
            None => ProviderError::new(ErrorKind::Unavailable, operation, "the store is closed"),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing in here panics between two changes that belong together.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write_bytes(write: &Write) -> usize {
    let content = match &write.intent {
        Intent::Put { content, .. } => content.len(),
        Intent::Delete { .. } => 0,
    };
    content + write.url.len() + WRITE_BYTES
}

fn drain<T>(from: &mut VecDeque<T>, to: &mut Vec<T>, bytes: usize, size: impl Fn(&T) -> usize) {
    let mut taken = 0;
    while taken < bytes
        && let Some(next) = from.pop_front()
    {
        taken += size(&next);
        to.push(next);
    }
}
