//! The pool: whoever reads, or changes something that is not a document or a record, borrows a session.

use std::ops::Deref;
use std::sync::Arc;

use flare_provider::Result;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connect::{Connector, Fate, Lost, Session};
use crate::error::{self, Work};

/// Bound: as many sessions as there are permits. When full: who comes waits for one that is given back.
pub(crate) struct Pool {
    connector: Arc<Connector>,
    idle: Mutex<Vec<Session>>,
    room: Arc<Semaphore>,
}

impl Pool {
    pub fn new(connector: Arc<Connector>, sessions: usize) -> Pool {
        Pool { connector, idle: Mutex::default(), room: Arc::new(Semaphore::new(sessions)) }
    }

    /// A session of one's own until it is dropped.
    pub async fn get(self: &Arc<Self>) -> Result<Borrowed> {
        let permit = self.room.clone().acquire_owned().await.map_err(|_| error::closed("postgresql.pool"))?;
        loop {
            let idle = self.idle.lock().pop();
            let session = match idle {
                Some(session) if session.client.is_closed() => continue,
                Some(session) => session,
                None => self.connector.connect().await?,
            };
            return Ok(Borrowed {
                session: Some(session),
                spoiled: false,
                pool: self.clone(),
                _permit: permit,
            });
        }
    }
}

/// A session out of the pool.
pub(crate) struct Borrowed {
    session: Option<Session>,
    /// Something is open in it: nobody else may have it.
    spoiled: bool,
    pool: Arc<Pool>,
    _permit: OwnedSemaphorePermit,
}

impl Deref for Borrowed {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session.as_ref().expect("it has one until it is dropped")
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if let Some(session) = self.session.take()
            && !self.spoiled
            && !session.client.is_closed()
        {
            self.pool.idle.lock().push(session);
        }
    }
}

/// How a transaction is begun.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Begin {
    /// One that writes: each statement sees what is committed when it begins.
    Write,
    /// One snapshot for all statements.
    Read,
}

impl Borrowed {
    /// Begins a transaction.
    pub async fn begin(&mut self, begin: Begin) -> Work<()> {
        self.spoiled = true;
        let sql = match begin {
            Begin::Write => "BEGIN",
            Begin::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        Ok(self.client.batch_execute(sql).await?)
    }

    /// Ends it without a change. What fails here ends with the session.
    pub async fn roll_back(&mut self) {
        if self.client.batch_execute("ROLLBACK").await.is_ok() {
            self.spoiled = false;
        }
    }

    /// Makes it durable. If the answer is lost, it is asked for on another connection.
    pub async fn commit(mut self, operation: &'static str) -> Result<()> {
        let xid = self.client.query_one("SELECT pg_current_xact_id()::text", &[]).await;
        let xid: String = match xid.and_then(|row| row.try_get(0)) {
            Ok(xid) => xid,
            Err(error) => return Err(error::told(operation, error)),
        };
        let Err(failed) = self.client.batch_execute("COMMIT").await else {
            self.spoiled = false;
            return Ok(());
        };
        let lost = Lost { xid, backend: self.backend.clone() };
        let pool = self.pool.clone();
        drop(self);
        tracing::warn!(operation, error = %failed, "the answer to a commit was lost, asking what became of it");
        for _ in 0..3 {
            let asked = async { lost.ask(&*pool.get().await?).await };
            match asked.await {
                Ok(Some(Fate::Committed)) => return Ok(()),
                Ok(Some(Fate::Aborted)) => return Err(error::told(operation, failed)),
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(error = %error.told(operation), "it is asked again");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        }
        Err(error::unknown(operation))
    }
}
