//! Connections: an address comes in, sessions that are set up alike go out. A server that cannot be reached is tried
//! again after a while that grows and varies; until then everyone hears at once that it is not there.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use flare_provider::{ErrorKind, ProviderError, Result};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Statement};

use crate::Options;
use crate::error::{self, Work};
use crate::tls::MakeRustls;

const OPERATION: &str = "postgresql.connect";

/// How long a server that was not there is left alone: from, and at most.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How often it is looked whether a session has ended.
const LOOK: Duration = Duration::from_millis(5);

/// How often a connection without traffic is probed by the kernel.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// So long the server waits at most for the next statement of a transaction. A node that is suspended or cut off in the middle of one holds
/// lanes, feeds and numbers that all others need: they would wait for as long as it is away.
const IDLE: Duration = Duration::from_secs(2);

/// How often, and how many times, the server looks for a node that says nothing: one that was cut off does not say that it left.
const SERVER_KEEPALIVE: (Duration, u32) = (Duration::from_secs(10), 3);

/// Who hears what a session is notified of.
pub(crate) type Hears = Arc<dyn Fn(Option<&str>) + Send + Sync>;

/// Opens sessions.
pub(crate) struct Connector {
    config: tokio_postgres::Config,
    tls: MakeRustls,
    /// What every session begins with.
    setup: String,
    timeout: Duration,
    handle: Handle,
    trouble: Mutex<Trouble>,
    /// The timeline of the server when the store was opened, where another one means that something may be lost.
    timeline: Mutex<Option<i64>>,
    fatal: Arc<dyn Fn(ProviderError) + Send + Sync>,
}

/// How the last tries went.
struct Trouble {
    failures: u32,
    /// Why nobody tries at the moment.
    waiting: Option<String>,
    /// The state of a small generator: nodes that lost a server come back one by one.
    chance: u64,
}

/// A session of the server, which knows it by these; no other ever has both.
#[derive(Clone, Debug)]
pub(crate) struct Backend {
    pub pid: i32,
    pub started: String,
}

/// One connection, and the statements that were prepared on it.
pub(crate) struct Session {
    pub client: Client,
    pub backend: Backend,
    prepared: Mutex<HashMap<&'static str, Statement>>,
}

impl Session {
    /// A statement, prepared once for each session.
    pub async fn prepare(&self, sql: &'static str) -> Work<Statement> {
        let known = self.prepared.lock().get(sql).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let statement = self.client.prepare(sql).await?;
        self.prepared.lock().insert(sql, statement.clone());
        Ok(statement)
    }
}

/// How to connect.
pub(crate) struct Way {
    pub config: tokio_postgres::Config,
    pub tls: MakeRustls,
    pub schema: String,
    pub connect_timeout: Duration,
    pub statement_timeout: Duration,
    pub tcp_user_timeout: Duration,
    pub seed: u64,
    pub fatal: Arc<dyn Fn(ProviderError) + Send + Sync>,
}

impl Way {
    /// As the options of a store have it.
    pub fn of(options: &Options) -> Result<Way> {
        let config = options.url.parse().map_err(|error: tokio_postgres::Error| {
            // Its text names the part that is wrong, and never the password.
            ProviderError::new(ErrorKind::Unsupported, OPERATION, format!("the url of PostgreSQL: {error}"))
        });
        let mut config: tokio_postgres::Config = config?;
        config.ssl_mode(options.tls.ssl_mode());
        Ok(Way {
            config,
            tls: options.tls.connector()?,
            schema: options.schema.clone(),
            connect_timeout: options.connect_timeout,
            statement_timeout: options.statement_timeout,
            tcp_user_timeout: options.tcp_user_timeout,
            seed: options.seed,
            fatal: options.fatal.clone(),
        })
    }
}

impl Connector {
    pub fn new(way: Way, handle: Handle) -> Connector {
        let Way {
            mut config,
            tls,
            schema,
            connect_timeout,
            statement_timeout,
            tcp_user_timeout,
            seed,
            fatal,
        } = way;
        config.connect_timeout(connect_timeout);
        config.tcp_user_timeout(tcp_user_timeout);
        config.keepalives(true).keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE);
        if config.get_application_name().is_none() {
            config.application_name("flare");
        }
        // By SET and not as parameters of the connection, which poolers refuse. Every statement goes by a key; a plan that
        // was made while a table was nearly empty would otherwise read all of it until statistics are gathered.
        let setup = format!(
            "SET search_path = {}; SET statement_timeout = {}; SET idle_in_transaction_session_timeout = {};
             SET tcp_keepalives_idle = {}; SET tcp_keepalives_interval = {}; SET tcp_keepalives_count = {};
             SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
             SET jit = off; SET default_transaction_isolation = 'read committed';
             SELECT set_config('synchronous_commit', 'on', false)
             WHERE current_setting('synchronous_commit') = 'off'",
            quoted(&schema),
            statement_timeout.as_millis(),
            IDLE.as_millis(),
            SERVER_KEEPALIVE.0.as_secs(),
            SERVER_KEEPALIVE.0.as_secs(),
            SERVER_KEEPALIVE.1,
        );
        let trouble = Mutex::new(Trouble { failures: 0, waiting: None, chance: seed });
        Connector {
            config,
            tls,
            setup,
            timeout: connect_timeout,
            handle,
            trouble,
            timeline: Mutex::new(None),
            fatal,
        }
    }

    /// A new session; at once an error while the server is left alone.
    pub async fn connect(self: &Arc<Self>) -> Result<Session> {
        self.connect_with(None).await
    }

    /// The same, and what it is notified of goes to `heard`; `None` when it has ended.
    pub async fn connect_to_listen(self: &Arc<Self>, heard: Hears) -> Result<Session> {
        self.connect_with(Some(heard)).await
    }

    async fn connect_with(self: &Arc<Self>, heard: Option<Hears>) -> Result<Session> {
        if let Some(why) = &self.trouble.lock().waiting {
            return Err(unreachable(why));
        }
        match tokio::time::timeout(self.timeout, self.try_connect(heard)).await {
            Ok(Ok(session)) => {
                self.trouble.lock().failures = 0;
                Ok(session)
            }
            Ok(Err(failed)) => {
                let failed = failed.told(OPERATION);
                self.leave_alone(words(&failed));
                Err(failed)
            }
            Err(_elapsed) => {
                let why = format!("no connection within {:?}", self.timeout);
                self.leave_alone(why.clone());
                Err(unreachable(&why))
            }
        }
    }

    async fn try_connect(&self, heard: Option<Hears>) -> Work<Session> {
        let (client, mut connection) = self.config.connect(self.tls.clone()).await?;
        // It ends with the session, or with the runtime; whoever asks on it then hears why.
        self.handle.spawn(async move {
            loop {
                match poll_fn(|context| connection.poll_message(context)).await {
                    Some(Ok(AsyncMessage::Notification(said))) => {
                        if let Some(heard) = &heard {
                            heard(Some(said.payload()));
                        }
                    }
                    Some(Ok(_notice)) => {}
                    Some(Err(error)) => {
                        tracing::debug!(error = %error, "a connection to PostgreSQL has ended");
                        break;
                    }
                    None => break,
                }
            }
            if let Some(heard) = &heard {
                heard(None);
            }
        });
        client.batch_execute(&self.setup).await?;
        let row = client
            .query_one(
                "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()",
                &[],
            )
            .await?;
        let backend = Backend { pid: row.try_get(0)?, started: row.try_get(1)? };
        let expected = *self.timeline.lock();
        if let Some(expected) = expected {
            let present = timeline(&client).await?;
            if present != expected {
                let detail = format!(
                    "PostgreSQL is on timeline {present} and was on {expected}: what was answered may be lost; \
                     this node ends, and begins anew under another incarnation of the log"
                );
                let lost = ProviderError::new(ErrorKind::Internal, OPERATION, detail);
                (self.fatal)(ProviderError::new(ErrorKind::Internal, OPERATION, lost.detail.clone()));
                return Err(lost.into());
            }
        }
        Ok(Session { client, backend, prepared: Mutex::default() })
    }

    /// From now on a server of another timeline is another log.
    pub fn expect_timeline(&self, timeline: i64) {
        *self.timeline.lock() = Some(timeline);
    }

    /// Nobody tries for a while.
    fn leave_alone(self: &Arc<Self>, why: String) {
        let pause = {
            let mut trouble = self.trouble.lock();
            if trouble.waiting.is_some() {
                return;
            }
            if trouble.failures == 0 {
                tracing::warn!(why, "PostgreSQL cannot be reached, trying until it can");
            }
            trouble.waiting = Some(why);
            let longest = PAUSE * 2_u32.pow(trouble.failures.min(8));
            trouble.failures = trouble.failures.saturating_add(1);
            // From a half of it to the whole.
            trouble.chance = trouble.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let share = 0.5 + (trouble.chance >> 33) as f64 / f64::from(1_u32 << 31) / 2.0;
            longest.min(LONGEST_PAUSE).mul_f64(share)
        };
        let connector = self.clone();
        self.handle.spawn(async move {
            tokio::time::sleep(pause).await;
            connector.trouble.lock().waiting = None;
        });
    }
}

/// Which history of itself the server writes: a standby that takes over begins another one. By what it writes now: its last
/// checkpoint may be of before. A standby that has not taken over yet refuses to say, and is waited for.
pub(crate) async fn timeline(client: &Client) -> Work<i64> {
    let ask = "SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint";
    Ok(client.query_one(ask, &[]).await?.try_get(0)?)
}

/// A name as SQL takes it, whatever is in it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn words(error: &ProviderError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{}: {source}", error.detail),
        None => error.detail.clone(),
    }
}

fn unreachable(why: &str) -> ProviderError {
    ProviderError::new(ErrorKind::Unavailable, OPERATION, format!("PostgreSQL cannot be reached: {why}"))
}

/// What became of a transaction whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Committed,
    Aborted,
}

/// A transaction that was asked to commit, and nobody heard whether it did.
#[derive(Clone, Debug)]
pub(crate) struct Lost {
    /// Its id, as the server counts.
    pub xid: String,
    pub backend: Backend,
}

impl Lost {
    /// Asks on another connection. The session of the transaction is ended first: while it lives, it may still commit.
    pub async fn ask(&self, session: &Session) -> Work<Option<Fate>> {
        loop {
            wait_for_end(session, &self.backend).await?;
            let status =
                session.client.query_one("SELECT pg_xact_status($1::text::xid8)", &[&self.xid]).await;
            let status: Option<String> = match status {
                Ok(row) => row.try_get(0)?,
                // Another server, to which this transaction is in the future: it never got there.
                Err(error) if error.code() == Some(&SqlState::INVALID_PARAMETER_VALUE) => {
                    return Ok(Some(Fate::Aborted));
                }
                Err(error) => return Err(error.into()),
            };
            match status.as_deref() {
                Some("committed") => return Ok(Some(Fate::Committed)),
                Some("aborted") => return Ok(Some(Fate::Aborted)),
                Some(_in_progress) => tokio::time::sleep(LOOK).await,
                None => return Ok(None),
            }
        }
    }
}

/// Ends a session of ours and waits until it is gone: from then on nothing more is done by it.
pub(crate) async fn wait_for_end(session: &Session, backend: &Backend) -> Work<()> {
    loop {
        let there = session
            .client
            .query_opt(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start::text = $2",
                &[&backend.pid, &backend.started],
            )
            .await?;
        if there.is_none() {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// An error of the whole engine that says it cannot be reached, for those that never tried.
pub(crate) fn not_now(operation: &'static str, error: &ProviderError) -> ProviderError {
    match error.kind {
        ErrorKind::Unavailable => ProviderError::new(ErrorKind::Unavailable, operation, words(error)),
        _ => error::closed(operation),
    }
}
