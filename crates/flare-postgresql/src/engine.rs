//! The engine as its contracts see it: a pool of sessions, the committers before the documents, the recorder before the
//! feeds. Everything runs on the engine's own threads, to its end, whoever still listens.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use flare_provider::{ProviderError, Result, Witness};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::committing::Committers;
use crate::error::{self, Work, WorkError};
use crate::pool::{Begin, Borrowed, Pool};
use crate::recording::Recorder;

/// What the contracts work with.
pub(crate) struct Engine {
    pub runner: Runner,
    pub committers: Committers,
    pub recorder: Recorder,
    pub witness: Arc<Watch>,
    /// Rung when something was left behind that has to be removed.
    pub leavings: Arc<Notify>,
}

/// What asks and changes is the same for all contracts.
impl Deref for Engine {
    type Target = Runner;

    fn deref(&self) -> &Runner {
        &self.runner
    }
}

/// Runs what is asked on the engine's threads, each time with a session out of a pool.
#[derive(Clone)]
pub(crate) struct Runner {
    pub handle: Handle,
    pub pool: Arc<Pool>,
}

impl Runner {
    /// Runs work on the engine's threads.
    async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.handle.spawn(work).await.unwrap_or_else(|ended| {
            if ended.is_panic() {
                std::panic::resume_unwind(ended.into_panic());
            }
            Err(error::unknown(operation))
        })
    }

    /// Asks something, outside of transactions.
    pub async fn read<T, F>(
        &self,
        operation: &'static str,
        question: impl FnOnce(Arc<Borrowed>) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Work<T>> + Send + 'static,
    {
        let pool = self.pool.clone();
        self.run(operation, async move {
            let session = pool.get().await.map_err(|error| told(operation, error))?;
            question(Arc::new(session)).await.map_err(|error| error.told(operation))
        })
        .await
    }

    /// Does something by a single statement, which is a transaction of its own. Where the answer does not come nobody knows.
    pub async fn write<T, F>(
        &self,
        operation: &'static str,
        change: impl FnOnce(Arc<Borrowed>) -> F + Send + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Work<T>> + Send + 'static,
    {
        let pool = self.pool.clone();
        self.run(operation, async move {
            let session = pool.get().await.map_err(|error| told(operation, error))?;
            change(Arc::new(session)).await.map_err(|error| match error {
                WorkError::Server(error) if error::may_be_done(&error) => {
                    error::unknown(operation).because(error)
                }
                error => error.told(operation),
            })
        })
        .await
    }

    /// Does something in one transaction: committed if it goes well, and undone otherwise.
    pub async fn change<T, F>(&self, operation: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'s> FnOnce(&'s Borrowed) -> Pin<Box<dyn Future<Output = Work<T>> + Send + 's>>
            + Send
            + 'static,
    {
        let pool = self.pool.clone();
        self.run(operation, async move {
            let mut session = pool.get().await.map_err(|error| told(operation, error))?;
            let begun = session.begin(Begin::Write).await;
            begun.map_err(|error| error.told(operation))?;
            match work(&session).await {
                Ok(done) => {
                    session.commit(operation).await?;
                    Ok(done)
                }
                Err(error) => {
                    session.roll_back().await;
                    Err(error.told(operation))
                }
            }
        })
        .await
    }

    /// Asks several things of one snapshot.
    pub async fn snapshot<T, F>(&self, operation: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'s> FnOnce(&'s Borrowed) -> Pin<Box<dyn Future<Output = Work<T>> + Send + 's>>
            + Send
            + 'static,
    {
        let pool = self.pool.clone();
        self.run(operation, async move {
            let mut session = pool.get().await.map_err(|error| told(operation, error))?;
            session.begin(Begin::Read).await.map_err(|error| error.told(operation))?;
            let read = work(&session).await;
            session.roll_back().await;
            read.map_err(|error| error.told(operation))
        })
        .await
    }
}

/// An error of the way to the server, under the name of what was asked for.
fn told(operation: &'static str, error: ProviderError) -> ProviderError {
    ProviderError { operation, ..error }
}

/// Who hears of changes.
#[derive(Default)]
pub(crate) struct Watch {
    witness: Mutex<Option<Arc<dyn Witness>>>,
}

impl Watch {
    /// From now on this one.
    pub fn set(&self, witness: Arc<dyn Witness>) {
        *self.witness.lock() = Some(witness);
    }

    /// Who hears of changes now.
    pub fn get(&self) -> Option<Arc<dyn Witness>> {
        self.witness.lock().clone()
    }
}
