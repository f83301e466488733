//! One question of the life of a node becomes one call of the coordinator, or of the ledger; its answer goes back under the
//! number of the question. What is not answered in time may be written all the same.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_model::cluster::life::{Answer, Ask, Event, Keyed, Request, Snapshot};
use flare_provider::{Cluster, ErrorKind, Ledger, ProviderError};
use tokio::sync::Semaphore;

/// So many small writes are under way at once: a node that takes a thousand units over does not send a thousand requests.
const AT_ONCE: usize = 16;

/// How questions are asked.
pub struct Asker {
    cluster: Arc<dyn Cluster>,
    ledger: Arc<dyn Ledger>,
    owner: String,
    /// Before every key.
    prefix: String,
    /// How long an answer is waited for.
    patience: Duration,
    turns: Semaphore,
}

impl Asker {
    /// For a node of a cluster.
    pub fn new(
        cluster: Arc<dyn Cluster>,
        ledger: Arc<dyn Ledger>,
        owner: String,
        name: &str,
        patience: Duration,
    ) -> Asker {
        let (prefix, turns) = (format!("{name}/"), Semaphore::new(AT_ONCE));
        Asker { cluster, ledger, owner, prefix, patience, turns }
    }

    /// The coordinator.
    pub fn cluster(&self) -> &dyn Cluster {
        &*self.cluster
    }

    /// Before every key.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Asks.
    pub async fn ask(&self, ask: Ask, request: Request) -> Event {
        // What keeps the session alive, and what is looked at, waits for nobody.
        let small = matches!(
            request,
            Request::Create { .. } | Request::Replace { .. } | Request::Delete { .. } | Request::Epoch
        );
        let _turn = match small {
            true => self.turns.acquire().await.ok(),
            false => None,
        };
        let answered = tokio::time::timeout(self.patience, self.call(request)).await;
        Event::Answered { ask, answer: answered.unwrap_or(Answer::Unknown) }
    }

    async fn call(&self, request: Request) -> Answer {
        let key = |key: String| format!("{}{key}", self.prefix);
        match request {
            Request::Grant { ttl } => match self.cluster.grant(&self.owner, ttl).await {
                Ok(granted) => Answer::Granted { session: granted.session, ttl: granted.ttl },
                Err(error) => refused(error),
            },
            Request::Renew { session } => match self.cluster.renew(&session, &self.owner).await {
                Ok(ttl) => Answer::Renewed(ttl),
                Err(error) => refused(error),
            },
            Request::End { session } => done(self.cluster.end(&session, &self.owner).await.map(|()| None)),
            Request::Create { key: name, value, session } => {
                let created =
                    self.cluster.put_if_absent(&key(name), Bytes::from(value), session.as_ref()).await;
                done(created.map(Some))
            }
            Request::Replace { key: name, version, value } => {
                done(self.cluster.put_if(&key(name), version, Bytes::from(value)).await.map(Some))
            }
            Request::Delete { key: name, version } => {
                done(self.cluster.delete_if(&key(name), version).await.map(|()| None))
            }
            Request::List => match self.list().await {
                Ok(snapshot) => Answer::Listed(Arc::new(snapshot)),
                Err(error) => refused(error),
            },
            #[cfg(feature = "planted")]
            Request::Epoch if flare_model::planted::Bug::EpochFromCoordinator.is_planted() => {
                let (name, value) = (key("epochs".to_owned()), Bytes::new());
                let listed = self.cluster.list(&name).await.unwrap_or_default();
                let put = match listed.first() {
                    Some(entry) => self.cluster.put_if(&name, entry.version, value).await,
                    None => self.cluster.put_if_absent(&name, value, None).await,
                };
                put.map_or_else(refused, |version| Answer::Epoch(version.0))
            }
            Request::Epoch => match self.ledger.next_epoch().await {
                Ok(epoch) => Answer::Epoch(epoch),
                Err(error) => refused(error),
            },
        }
    }

    /// Everything that the coordinator has of this cluster.
    pub async fn list(&self) -> Result<Snapshot, ProviderError> {
        self.list_below("").await
    }

    /// What it has whose keys begin like this.
    pub async fn list_below(&self, beginning: &str) -> Result<Snapshot, ProviderError> {
        let entries = self.cluster.list(&format!("{}{beginning}", self.prefix)).await?;
        let keyed = entries.iter().filter_map(|entry| {
            let key = entry.key.strip_prefix(&self.prefix)?;
            Some(Keyed { key, value: &entry.value, version: entry.version, session: entry.session.as_ref() })
        });
        Ok(Snapshot::read(keyed))
    }
}

fn done(answered: Result<Option<flare_provider::Version>, ProviderError>) -> Answer {
    match answered {
        Ok(version) => Answer::Done(version),
        Err(error) => refused(error),
    }
}

fn refused(error: ProviderError) -> Answer {
    match error.kind {
        ErrorKind::Conflict(_) => Answer::Conflict,
        ErrorKind::Fenced => Answer::Fenced,
        ErrorKind::Unavailable => Answer::Failed,
        ErrorKind::Unknown => Answer::Unknown,
        ErrorKind::Unsupported | ErrorKind::Corrupt | ErrorKind::Internal => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the coordinator refuses what it is asked"
            );
            Answer::Failed
        }
    }
}
