//! Keeping a schema in order from the command line: how to connect comes in; plans go out, and are carried out. Whoever carries one
//! out holds a lock and looks again, so that of several at once one does it, and the others find nothing to do.

mod import;
mod plan;

use std::sync::Arc;

use flare_provider::transfer::Rows;
use flare_provider::upkeep::Change;
use flare_provider::{ErrorKind, ProviderError, Result};
use tokio::runtime::Runtime;

use crate::Options;
use crate::connect::{Connector, Session, Way};
use crate::error::{Work, WorkError};
use crate::migrations::{self, Migration};

const OPERATION: &str = "postgresql.upkeep";

/// What is to be looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// What this version needs and the schema lacks: the schema itself, and migrations.
    Setup,
    /// What was there and is missing: indexes.
    Fixup,
    /// What is there and belongs to nothing.
    Cleanup,
}

/// A connection to a server whose schema is looked after.
pub struct Upkeep {
    runtime: Runtime,
    session: Session,
    schema: String,
    /// The name of the cluster, which owns the schema.
    owner: String,
}

impl Upkeep {
    /// Connects. `owner` is the name of the cluster: what does not carry it is not deleted.
    pub fn open(options: &Options, owner: &str) -> Result<Upkeep> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(
                |error| {
                    ProviderError::new(ErrorKind::Unavailable, OPERATION, "no thread for a connection")
                        .because(error)
                },
            )?;
        let way = Way::of(options)?;
        let connector = Arc::new(Connector::new(way, runtime.handle().clone()));
        let session = runtime.block_on(async {
            let session = connector.connect().await?;
            // Looking through everything, and copying it, may take longer than anything that a node does.
            let patient = session.client.batch_execute("SET statement_timeout = 0").await;
            patient.map_err(|error| WorkError::from(error).told(OPERATION))?;
            Ok::<Session, ProviderError>(session)
        })?;
        Ok(Upkeep { runtime, session, schema: options.schema.clone(), owner: owner.to_owned() })
    }

    /// All migrations, applied and pending. Reads only.
    pub fn status(&self) -> Result<Vec<Migration>> {
        self.run(migrations::status(&self.session.client, &self.schema))
    }

    /// What would be done. Reads only.
    pub fn plan(&self, purpose: Purpose) -> Result<Vec<Change>> {
        self.run(plan::plan(&self.session, self.place(), purpose))
    }

    /// Does what there is to do by now, as one, and answers that.
    pub fn apply(&self, purpose: Purpose) -> Result<Vec<Change>> {
        self.run(plan::apply(&self.session, self.place(), purpose))
    }

    /// The consumers that are stored, each with its id and body. Reads only.
    pub fn consumers(&self) -> Result<Vec<(String, String)>> {
        self.run(async {
            let all = "SELECT id, body FROM entities WHERE kind = 'consumer' ORDER BY number";
            let rows = self.session.client.query(all, &[]).await?;
            rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
        })
    }

    /// Takes everything that `source` gives, as one: all of it, or nothing. The schema is brought to the present shape, and has to be empty. Answers
    /// how many rows it was.
    pub fn import(&self, source: impl FnOnce(&mut dyn Rows) -> Result<()>) -> Result<u64> {
        import::import(&self.runtime, &self.session, &self.schema, source)
    }

    fn place(&self) -> plan::Place<'_> {
        plan::Place { schema: &self.schema, owner: &self.owner }
    }

    fn run<T>(&self, work: impl Future<Output = Work<T>>) -> Result<T> {
        self.runtime.block_on(work).map_err(|error| error.told(OPERATION))
    }
}
