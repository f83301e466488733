//! Jobs for the writer: work comes in, is done inside a transaction with others, and is answered when that
//! transaction is durable, or has failed.

use flare_model::document::Write;
use flare_provider::{Committed, ErrorKind, ProviderError, Result};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::desk::Desk;
use crate::error::{TransactionFailure, Work, WorkError};

/// Something to be done inside a transaction, whatever it answers.
pub(crate) trait Job: Send {
    /// Does it. An error rolls the whole transaction back; a refusal is kept for the answer.
    fn run(&mut self, desk: &mut Desk<'_>) -> rusqlite::Result<()>;

    /// Tells the caller what became of it. It may have left: then nobody hears it.
    fn answer(self: Box<Self>, failure: Option<&TransactionFailure>);

    /// How much of a commit it takes, about.
    fn bytes(&self) -> usize;
}

/// A job made of a closure.
pub(crate) struct Task<T, F> {
    operation: &'static str,
    work: Option<F>,
    result: Option<Result<T>>,
    answer: oneshot::Sender<Result<T>>,
    room: OwnedSemaphorePermit,
}

impl<T, F: FnOnce(&mut Desk<'_>) -> Work<T>> Task<T, F> {
    /// A job and the place where its answer will come.
    pub fn new(
        operation: &'static str,
        room: OwnedSemaphorePermit,
        work: F,
    ) -> (Self, oneshot::Receiver<Result<T>>) {
        let (answer, answered) = oneshot::channel();
        (Self { operation, work: Some(work), result: None, answer, room }, answered)
    }
}

impl<T: Send, F: FnOnce(&mut Desk<'_>) -> Work<T> + Send> Job for Task<T, F> {
    fn run(&mut self, desk: &mut Desk<'_>) -> rusqlite::Result<()> {
        let Some(work) = self.work.take() else { return Ok(()) };
        self.result = Some(match work(desk) {
            Ok(done) => Ok(done),
            Err(WorkError::Refused(refused)) => Err(refused),
            Err(WorkError::Store(error)) => return Err(error),
        });
        Ok(())
    }

    fn answer(self: Box<Self>, failure: Option<&TransactionFailure>) {
        let result = match (failure, self.result) {
            (Some(failure), _) => Err(failure.told(self.operation)),
            (None, Some(result)) => result,
            (None, None) => Err(ProviderError::new(ErrorKind::Internal, self.operation, "it was not run")),
        };
        // Room first: whoever is answered may come again at once.
        drop(self.room);
        let _nobody_waits = self.answer.send(result);
    }

    fn bytes(&self) -> usize {
        self.room.num_permits()
    }
}

/// A batch of writes. Not a [`Task`], since there are very many of these.
pub(crate) struct Commit {
    /// What is asked for; empty once it is done.
    pub batch: Vec<Write>,
    /// What to answer, item by item, or that the whole is refused.
    pub answers: Result<Vec<Result<Committed>>>,
    answer: oneshot::Sender<Result<Vec<Result<Committed>>>>,
    room: OwnedSemaphorePermit,
}

/// What a commit answers.
pub(crate) type Answered = oneshot::Receiver<Result<Vec<Result<Committed>>>>;

impl Commit {
    /// A batch and the place where its answer will come.
    pub fn new(batch: Vec<Write>, room: OwnedSemaphorePermit) -> (Commit, Answered) {
        let (answer, answered) = oneshot::channel();
        let answers = Ok(Vec::with_capacity(batch.len()));
        (Commit { batch, answers, answer, room }, answered)
    }

    /// Tells the caller what became of it.
    pub fn answer(self, failure: Option<&TransactionFailure>) {
        let result = match failure {
            Some(failure) => Err(failure.told("documents.commit")),
            None => self.answers,
        };
        drop(self.room);
        let _nobody_waits = self.answer.send(result);
    }

    /// How much of a commit it takes.
    pub fn bytes(&self) -> usize {
        self.room.num_permits()
    }
}
