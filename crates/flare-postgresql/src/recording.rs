//! The recorder: records come in from delivery threads, and whatever waits goes out as one. One at a time, so that a record
//! whose caller has gone is never written after a later one of the same feed.

use std::sync::Arc;

use flare_provider::{FeedWrite, ProviderError, Result};
use tokio::sync::{mpsc, oneshot};

use crate::connect::{Backend, Connector, Session, not_now, wait_for_end};
use crate::error::{self, Work, WorkError};
use crate::ledger::write::{Plan, Written, fold};

const OPERATION: &str = "ledger.write";

/// Bound: so many records go into one transaction, and as many again as one call brings. When full: the rest waits.
const MOST: usize = 4096;

type Answer = Result<Vec<Result<()>>>;

struct Call {
    writes: Vec<FeedWrite>,
    answer: oneshot::Sender<Answer>,
}

/// The queue before the recorder. Bound: every delivery thread waits for its answer before it comes again.
pub(crate) struct Recorder {
    queue: mpsc::UnboundedSender<Call>,
}

impl Recorder {
    pub fn start(connector: Arc<Connector>, incarnation: u64, handle: &tokio::runtime::Handle) -> Recorder {
        let (queue, waiting) = mpsc::unbounded_channel();
        handle.spawn(Recording { connector, incarnation, waiting, session: None, former: None }.run());
        Recorder { queue }
    }

    pub async fn write(&self, writes: Vec<FeedWrite>) -> Answer {
        let (answer, answered) = oneshot::channel();
        if self.queue.send(Call { writes, answer }).is_err() {
            return Err(error::closed(OPERATION));
        }
        answered.await.unwrap_or_else(|_dropped| Err(error::unknown(OPERATION)))
    }
}

struct Recording {
    connector: Arc<Connector>,
    incarnation: u64,
    waiting: mpsc::UnboundedReceiver<Call>,
    session: Option<Session>,
    /// A session that was lost while it wrote: until it has ended, what it wrote may still become durable, over what is
    /// written meanwhile.
    former: Option<Backend>,
}

impl Recording {
    /// Until the engine is closed.
    async fn run(mut self) {
        while let Some(mut first) = self.waiting.recv().await {
            let mut writes = std::mem::take(&mut first.writes);
            let mut callers = vec![(writes.len(), first.answer)];
            while writes.len() < MOST
                && let Ok(next) = self.waiting.try_recv()
            {
                callers.push((next.writes.len(), next.answer));
                writes.extend(next.writes);
            }
            match self.record(&writes).await {
                Ok(answers) => {
                    let mut answers = answers.into_iter();
                    for (quantity, caller) in callers {
                        let _nobody_waits = caller.send(Ok(answers.by_ref().take(quantity).collect()));
                    }
                }
                Err(error) => {
                    for (_, caller) in callers {
                        let told = ProviderError::new(error.kind.clone(), OPERATION, error.detail.clone());
                        let _nobody_waits = caller.send(Err(told));
                    }
                }
            }
        }
    }

    async fn record(&mut self, writes: &[FeedWrite]) -> Result<Vec<Result<()>>> {
        let session = self.take_session().await.map_err(|error| not_now(OPERATION, &error))?;
        let plan = Plan::of(writes);
        match self.write(&session, &plan).await {
            Ok(Written { answers, long }) => {
                let folded = long.is_empty() || fold_all(&session, &long).await;
                self.session = folded.then_some(session);
                Ok(answers)
            }
            Err(WorkError::Server(error)) if error.as_db_error().is_none() => {
                // Whether it is written is not asked: it is written again, and that is the same as once.
                self.former = Some(session.backend.clone());
                tracing::debug!(error = %error, "the answer to records was lost");
                Err(error::unknown(OPERATION))
            }
            Err(error) => {
                self.former = Some(session.backend.clone());
                if session.client.batch_execute("ROLLBACK").await.is_ok() {
                    (self.session, self.former) = (Some(session), None);
                }
                Err(error.told(OPERATION))
            }
        }
    }

    async fn take_session(&mut self) -> Result<Session> {
        if let Some(session) = self.session.take().filter(|session| !session.client.is_closed()) {
            return Ok(session);
        }
        let session = self.connector.connect().await?;
        if let Some(former) = &self.former {
            wait_for_end(&session, former).await.map_err(|error| error.told(OPERATION))?;
            self.former = None;
        }
        Ok(session)
    }

    async fn write(&self, session: &Session, plan: &Plan<'_>) -> Work<Written> {
        if plan.is_one_statement() {
            return plan.write(session, self.incarnation).await;
        }
        session.client.batch_execute("BEGIN").await?;
        let written = plan.write(session, self.incarnation).await?;
        session.client.batch_execute("COMMIT").await?;
        Ok(written)
    }
}

/// Folds long lists. The records are durable already: what fails here is done after the next ones. False: the session is
/// not to be used any more.
async fn fold_all(session: &Session, feeds: &[i64]) -> bool {
    let fold = async {
        session.client.batch_execute("BEGIN").await?;
        fold(session, feeds).await?;
        session.client.batch_execute("COMMIT").await?;
        Ok::<(), WorkError>(())
    };
    if let Err(error) = fold.await {
        let error = error.told(OPERATION);
        tracing::warn!(error = %error, "what clients have could not be folded now");
        return session.client.batch_execute("ROLLBACK").await.is_ok();
    }
    true
}
