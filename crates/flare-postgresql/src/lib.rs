//! The engine over PostgreSQL. Calls of the contracts come in from many tasks; committers turn whatever documents wait into
//! one transaction, the recorder does so with records, and a pool of sessions answers the rest.
//!
//! ```text
//! commit           → committing.rs → documents/commit.rs: two round trips → witness → answers
//! write            → recording.rs  → ledger/write.rs: one statement, the fence in it
//! create, open ... → engine.rs → pool.rs: a transaction of its own
//! get, scan ...    → engine.rs → pool.rs: one statement, and so one snapshot
//! grant, ring ...  → coordination/: for several nodes, in the same database
//!                     connect.rs opens sessions, and asks what became of a commit whose answer was lost
//! ```
//! `migrations/` has the schema and says why it is as it is. What is absent: retries of calls, timing and counting, which
//! are a wrapper's. A lost connection is made anew, and its callers hear that the store is not there, or that nobody knows.

mod acts;
mod catalog;
mod committing;
mod connect;
mod coordination;
mod documents;
mod engine;
mod error;
mod intake;
mod leavings;
mod ledger;
mod migrations;
mod numbers;
mod pool;
mod recording;
mod tls;
pub mod upkeep;

use std::fmt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use flare_provider::{ErrorKind, ProviderError, Result, Store};
use parking_lot::Mutex;
use tokio::runtime::Runtime;

pub use coordination::Coordination;
pub use migrations::{Applied, Migration};
pub use tls::Tls;

use committing::{Committers, Tools};
use connect::{Connector, Session, Way};
use coordination::Parts;
use engine::{Engine, Runner, Watch};
use error::Work;
use pool::Pool;
use recording::Recorder;

const OPERATION: &str = "postgresql.open";

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// `postgres://user:password@host:port/database`.
    pub url: String,
    /// The schema that has everything. It is made where it is missing.
    pub schema: String,
    /// All connections of this process.
    pub connections: usize,
    /// How many of them commit documents. A lane always goes to the same one.
    pub committers: usize,
    /// How many bytes of documents may wait. When full, documents are refused as `Unavailable`.
    pub queue_bytes: usize,
    /// How many bytes of documents go into one transaction at most.
    pub commit_bytes: usize,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// When a server that vanished is noticed.
    pub tcp_user_timeout: Duration,
    /// How often it is looked for what a notification would have told.
    pub poll_interval: Duration,
    /// Whether this process is to coordinate with others: some connections are kept for that.
    pub coordinates: bool,
    /// Whether it is encrypted.
    pub tls: Tls,
    /// A server of another timeline may lack what was answered: then it is another log.
    pub lossy_failover: bool,
    /// Only the process that opened the store last writes documents; an older one is told so, and ends.
    pub alone: bool,
    /// For pauses that vary.
    pub seed: u64,
    /// Called when this process cannot go on: it should end.
    pub fatal: Arc<dyn Fn(ProviderError) + Send + Sync>,
}

impl Options {
    /// The usual sizes. A fatal failure is only logged.
    pub fn new(url: impl Into<String>) -> Options {
        Options {
            url: url.into(),
            schema: "flare".to_owned(),
            connections: 16,
            committers: 1,
            queue_bytes: 64 << 20,
            commit_bytes: 4 << 20,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            tcp_user_timeout: Duration::from_secs(10),
            poll_interval: Duration::from_secs(1),
            coordinates: false,
            tls: Tls::Prefer,
            lossy_failover: false,
            alone: false,
            seed: 1,
            fatal: Arc::new(|error| tracing::error!(%error, "the store has failed")),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The url may have a password.
        f.debug_struct("Options").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// An open store. Dropping it closes it.
pub struct Postgresql {
    engine: Arc<Engine>,
    coordinating: Coordinating,
    runtime: Mutex<Option<Runtime>>,
}

impl Postgresql {
    /// Connects, brings the schema to the present shape, and starts the committers. Blocks until that is done.
    pub fn open(options: Options) -> Result<Postgresql> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("flare-postgresql")
            .enable_all()
            .build()
            .map_err(|error| {
                ProviderError::new(ErrorKind::Unavailable, OPERATION, "no threads for connections")
                    .because(error)
            })?;
        let handle = runtime.handle().clone();
        let (tell, told) = mpsc::channel();
        // Not `block_on`: whoever calls may be on a thread of another runtime.
        runtime.spawn(async move {
            let _nobody_waits = tell.send(start(options, handle).await);
        });
        match told.recv() {
            Ok(Ok((engine, coordinating))) => {
                Ok(Postgresql { engine: Arc::new(engine), coordinating, runtime: Mutex::new(Some(runtime)) })
            }
            Ok(Err(error)) => {
                runtime.shutdown_background();
                Err(error)
            }
            Err(_panicked) => {
                runtime.shutdown_background();
                Err(ProviderError::new(ErrorKind::Internal, OPERATION, "the engine ended as it began"))
            }
        }
    }

    /// The engine through its contracts. After `close` every call is `Unavailable`, or nobody knows what became of it.
    pub fn store(&self) -> Store {
        let engine = &self.engine;
        Store {
            catalog: engine.clone(),
            documents: engine.clone(),
            ledger: engine.clone(),
            acts: engine.clone(),
            intake: engine.clone(),
        }
    }

    /// The coordinator and the doorbell of the cluster of this name, in the same schema. Each call is another participant; what
    /// it does in the background ends with the last clone.
    pub fn coordination(&self, name: &str) -> Coordination {
        let Coordinating { connector, runner, renewing, schema, poll_interval, connect_timeout, ping } =
            self.coordinating.clone();
        let name = name.to_owned();
        Coordination::start(Parts {
            connector,
            runner,
            renewing,
            schema,
            name,
            poll_interval,
            connect_timeout,
            ping,
        })
    }

    /// Ends the connections. What is under way may be written, or may not; a second call finds nothing to do.
    pub fn close(&self) {
        if let Some(runtime) = self.runtime.lock().take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Postgresql {
    fn drop(&mut self) {
        self.close();
    }
}

/// What coordination is made of.
#[derive(Clone)]
struct Coordinating {
    connector: Arc<Connector>,
    runner: Runner,
    renewing: Runner,
    schema: String,
    poll_interval: Duration,
    connect_timeout: Duration,
    ping: Duration,
}

/// The longest time between two looks whether the connection that listens is still there.
const PING: Duration = Duration::from_secs(5);

/// With fewer connections, those who coordinate share them with everybody.
const FEW: usize = 8;

/// How many connections are for nobody but those who coordinate, beside the one that listens.
const COORDINATE: usize = 2;

/// And for nothing but keeping the node's own session: a renewal does not stand behind a thousand claims.
const RENEW: usize = 1;

async fn start(options: Options, handle: tokio::runtime::Handle) -> Result<(Engine, Coordinating)> {
    let connector = Arc::new(Connector::new(Way::of(&options)?, handle.clone()));
    let session = connector.connect().await?;
    let begun = begin(&session, &options).await.map_err(|error| error.told(OPERATION))?;
    if options.lossy_failover {
        connector.expect_timeline(begun.timeline);
    }
    drop(session);
    let needed = options.committers + COORDINATE + RENEW + 2;
    let apart = options.coordinates && options.connections >= FEW && options.connections > needed;
    let kept = usize::from(options.coordinates) + if apart { COORDINATE + RENEW } else { 0 };
    let sessions = options.connections.saturating_sub(options.committers + 1 + kept).max(1);
    let pool = Arc::new(Pool::new(connector.clone(), sessions));
    let runner = Runner { handle: handle.clone(), pool: pool.clone() };
    // A renewal does not wait for whoever reads much.
    let own = |sessions| if apart { Arc::new(Pool::new(connector.clone(), sessions)) } else { pool.clone() };
    let (others, renewing) = (own(COORDINATE), own(RENEW));
    let coordinating = Coordinating {
        connector: connector.clone(),
        runner: Runner { handle: handle.clone(), pool: others },
        renewing: Runner { handle: handle.clone(), pool: renewing },
        schema: options.schema,
        poll_interval: options.poll_interval,
        connect_timeout: options.connect_timeout,
        ping: options.tcp_user_timeout.min(PING),
    };
    let witness = Arc::new(Watch::default());
    let tools = Tools {
        connector: connector.clone(),
        witness: witness.clone(),
        commit_bytes: options.commit_bytes,
        writer: begun.writer,
        fatal: options.fatal,
    };
    let leavings = Arc::new(tokio::sync::Notify::new());
    handle.spawn(leavings::run(pool, leavings.clone()));
    let committers = Committers::start(options.committers.max(1), options.queue_bytes, &tools, &handle);
    let recorder = Recorder::start(connector, begun.incarnation, &handle);
    Ok((Engine { runner, committers, recorder, witness, leavings }, coordinating))
}

/// A server on another timeline than the last one may lack what was answered: then it is another log, and whoever owns feeds of the
/// old one writes no more of them. Within a transaction, so that of several that begin at once one does it.
async fn compare_timeline(session: &Session, timeline: i64) -> Work<()> {
    let known = numbers::lock(session, "timeline").await? as i64;
    if known == timeline {
        return Ok(());
    }
    numbers::set(session, "timeline", timeline as u64).await?;
    if known != 0 {
        tracing::error!(known, timeline, "PostgreSQL is on another timeline: what was answered may be lost");
        numbers::next(session, "incarnation").await?;
        let epoch = numbers::next(session, "epoch").await? as i64;
        session.client.execute("UPDATE feeds SET epoch = $1", &[&epoch]).await?;
    }
    Ok(())
}

/// What a process finds as it begins.
struct Begun {
    incarnation: u64,
    timeline: i64,
    writer: Option<u64>,
}

async fn begin(session: &Session, options: &Options) -> Work<Begun> {
    migrations::apply(&session.client, &options.schema).await?;
    let fsync: String = session.client.query_one("SHOW fsync", &[]).await?.try_get(0)?;
    if fsync == "off" {
        tracing::warn!(
            "PostgreSQL runs with fsync = off: after a crash of its machine the database may be lost"
        );
    }
    let mut timeline = 0;
    if options.lossy_failover {
        timeline = connect::timeline(&session.client).await?;
        session.client.batch_execute("BEGIN").await?;
        let compared = compare_timeline(session, timeline).await;
        session.client.batch_execute(if compared.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
        compared?;
    }
    let mut writer = None;
    if options.alone {
        writer = Some(numbers::next(session, "writer").await?);
        // Whoever holds a lane wrote under an older number, and is waited for; whoever comes later reads the new one.
        session.client.query("SELECT id FROM lanes ORDER BY id FOR SHARE", &[]).await?;
    }
    Ok(Begun { incarnation: numbers::get(session, "incarnation").await?, timeline, writer })
}
