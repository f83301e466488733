//! Committers: batches come in from many tasks; each committer turns whatever waits into one transaction, tells the
//! witness, and then the callers.

use std::sync::Arc;
use std::time::Duration;

use flare_model::document::{Intent, Write};
use flare_provider::{ErrorKind, ProviderError, Result};
use tokio::sync::{OwnedSemaphorePermit, RwLock, Semaphore, mpsc, oneshot};

use crate::connect::{Connector, Fate, Lost, Session, not_now};
use crate::documents::commit::{self, Answers, Done, Trouble};
use crate::engine::Watch;
use crate::error;

const OPERATION: &str = "documents.commit";

/// What a write takes beside its url and its content, about.
const WRITE_BYTES: usize = 160;

/// How long callers wait to hear what became of a commit whose answer was lost, and how often it is asked.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);

/// A batch that waits.
struct Commit {
    batch: Vec<Write>,
    /// Its lanes belong to several committers.
    spans: bool,
    answer: oneshot::Sender<Answers>,
    room: OwnedSemaphorePermit,
}

/// The queues before the committers.
pub(crate) struct Committers {
    queues: Vec<mpsc::UnboundedSender<Commit>>,
    /// Bound: so many bytes wait in all queues. When full: what comes is refused as `Unavailable`.
    room: Arc<Semaphore>,
    bound: u32,
}

/// What a committer needs.
#[derive(Clone)]
pub(crate) struct Tools {
    pub connector: Arc<Connector>,
    pub witness: Arc<Watch>,
    /// How many bytes go into one transaction at most.
    pub commit_bytes: usize,
    /// Who alone may write, if it is one alone.
    pub writer: Option<u64>,
    pub fatal: Arc<dyn Fn(ProviderError) + Send + Sync>,
}

impl Committers {
    /// Starts them.
    pub fn start(
        quantity: usize,
        queue_bytes: usize,
        tools: &Tools,
        handle: &tokio::runtime::Handle,
    ) -> Committers {
        let gate = Arc::new(RwLock::new(()));
        let mut queues = Vec::with_capacity(quantity);
        for _ in 0..quantity {
            let (queue, waiting) = mpsc::unbounded_channel();
            queues.push(queue);
            let committer = Committer { tools: tools.clone(), waiting, gate: gate.clone(), session: None };
            handle.spawn(committer.run());
        }
        let bound = u32::try_from(queue_bytes).unwrap_or(u32::MAX).min(Semaphore::MAX_PERMITS as u32);
        Committers { queues, room: Arc::new(Semaphore::new(bound as usize)), bound }
    }

    /// Puts a batch into its queue, and waits for its answer.
    pub async fn commit(&self, batch: Vec<Write>) -> Answers {
        let bytes = batch.iter().map(write_bytes).sum::<usize>();
        let permits = u32::try_from(bytes).unwrap_or(u32::MAX).clamp(1, self.bound);
        let Ok(room) = self.room.clone().try_acquire_many_owned(permits) else {
            return Err(ProviderError::new(
                ErrorKind::Unavailable,
                OPERATION,
                "too much is waiting to be written",
            ));
        };
        let lanes = commit::lanes_of(&batch);
        let owner = |lane: &flare_model::ids::LaneId| (lane.packed() % self.queues.len() as u64) as usize;
        let owners: std::collections::BTreeSet<usize> = lanes.iter().map(owner).collect();
        let spans = owners.len() > 1;
        let first = owners.first().copied().unwrap_or(0);
        let (answer, answered) = oneshot::channel();
        let commit = Commit { batch, spans, answer, room };
        if self.queues[first].send(commit).is_err() {
            return Err(error::closed(OPERATION));
        }
        // Dropped with the engine's threads, perhaps in the midst of it.
        answered.await.unwrap_or_else(|_dropped| Err(error::unknown(OPERATION)))
    }
}

fn write_bytes(write: &Write) -> usize {
    let content = match &write.intent {
        Intent::Put { content, .. } => content.len(),
        Intent::Delete { .. } => 0,
    };
    content + write.url.len() + WRITE_BYTES
}

struct Committer {
    tools: Tools,
    waiting: mpsc::UnboundedReceiver<Commit>,
    /// Shared by who writes in his own lanes, and taken alone for those of several: so that of each lane the witness
    /// hears in order.
    gate: Arc<RwLock<()>>,
    session: Option<Session>,
}

impl Committer {
    /// Until the engine is closed.
    async fn run(mut self) {
        while let Some(first) = self.waiting.recv().await {
            let mut group = vec![first];
            let mut bytes = group[0].room.num_permits();
            while bytes < self.tools.commit_bytes
                && let Ok(next) = self.waiting.try_recv()
            {
                bytes += next.room.num_permits();
                group.push(next);
            }
            let gate = self.gate.clone();
            if group.iter().any(|commit| commit.spans) {
                let _alone = gate.write().await;
                self.commit(group).await;
            } else {
                let _shared = gate.read().await;
                self.commit(group).await;
            }
        }
    }

    async fn commit(&mut self, group: Vec<Commit>) {
        let session = match self.take_session().await {
            Ok(session) => session,
            Err(error) => return refuse(group, |_| not_now(OPERATION, &error)),
        };
        let batches: Vec<&[Write]> = group.iter().map(|commit| commit.batch.as_slice()).collect();
        match commit::commit(&session, &batches, self.tools.writer).await {
            Ok(done) => {
                self.session = Some(session);
                self.tell(done, group);
            }
            Err(Trouble::Undone(error)) => {
                let error = error.told(OPERATION);
                if session.client.batch_execute("ROLLBACK").await.is_ok() {
                    self.session = Some(session);
                }
                let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                refuse(group, |operation| {
                    let detail = format!("{}: {cause}", error.detail);
                    ProviderError::new(error.kind.clone(), operation, detail)
                });
            }
            Err(Trouble::TakenOver) => {
                (self.tools.fatal)(commit::taken_over());
                refuse(group, |_| commit::taken_over());
            }
            Err(Trouble::Lost(lost, done)) => {
                drop(session);
                self.find_out(lost, done, group).await;
            }
        }
    }

    async fn take_session(&mut self) -> Result<Session> {
        match self.session.take() {
            Some(session) if !session.client.is_closed() => Ok(session),
            _ => self.tools.connector.connect().await,
        }
    }

    /// The witness first: a writer that is answered finds its change with everyone who reads.
    fn tell(&self, done: Done, group: Vec<Commit>) {
        let Done { answers, changes } = done;
        if let Some(witness) = self.tools.witness.get().filter(|_| !changes.is_empty()) {
            witness.committed(changes);
        }
        for (commit, answer) in group.into_iter().zip(answers) {
            drop(commit.room);
            let _nobody_waits = commit.answer.send(answer);
        }
    }

    /// Asks until it is known what became of a commit whose answer was lost. Nothing else is written meanwhile, and if it
    /// is there, the witness hears of it: what is in memory never parts from what is stored. Callers are not kept waiting.
    async fn find_out(&mut self, lost: Lost, done: Done, group: Vec<Commit>) {
        tracing::warn!(transaction = lost.xid, "the answer to a commit was lost, asking what became of it");
        let mut group = Some(group);
        let mut looks = PATIENCE.as_millis() / LOOK.as_millis();
        loop {
            let asked = async {
                let session = self.tools.connector.connect().await?;
                let fate = lost.ask(&session).await?;
                Ok::<_, error::WorkError>((session, fate))
            };
            match asked.await {
                Ok((session, Some(fate))) => {
                    self.session = Some(session);
                    tracing::info!(transaction = lost.xid, fate = ?fate, "what became of a commit is known");
                    return match fate {
                        Fate::Committed => self.tell(done, group.unwrap_or_default()),
                        Fate::Aborted => refuse(group.unwrap_or_default(), |operation| {
                            let detail = "PostgreSQL ended before it was committed";
                            ProviderError::new(ErrorKind::Unavailable, operation, detail)
                        }),
                    };
                }
                Ok((_, None)) => {
                    let detail = "PostgreSQL does not know any more what became of a commit";
                    (self.tools.fatal)(ProviderError::new(ErrorKind::Internal, OPERATION, detail));
                    return refuse(group.unwrap_or_default(), error::unknown);
                }
                Err(_not_yet) => {}
            }
            // Nothing can be written before this is known, and the server is not there.
            while let Ok(next) = self.waiting.try_recv() {
                refuse(vec![next], |operation| {
                    let detail = "PostgreSQL cannot be reached";
                    ProviderError::new(ErrorKind::Unavailable, operation, detail)
                });
            }
            looks = looks.saturating_sub(1);
            if looks == 0 {
                refuse(group.take().unwrap_or_default(), error::unknown);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Tells all callers the same.
fn refuse(group: Vec<Commit>, why: impl Fn(&'static str) -> ProviderError) {
    for commit in group {
        drop(commit.room);
        let _nobody_waits = commit.answer.send(Err(why(OPERATION)));
    }
}
