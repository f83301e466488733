//! The store, as configured: the only place that knows which engines there are.

use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;

use flare_core::config::{self, Config};
use flare_core::door::random_bytes;
use flare_core::journey::Report;
use flare_core::vault::Vault;
use flare_embedded::Embedded;
use flare_embedded::migrations::never_had_anything;
use flare_postgresql::{Coordination, Postgresql, Tls};
use flare_provider::memory::Memory;
use flare_provider::{ErrorKind, ProviderError, Store};

/// An opened engine.
pub enum Engine {
    /// A file on this machine.
    Embedded(Embedded),
    /// Nothing survives.
    Memory(Memory),
    /// A server.
    Postgresql(Postgresql),
}

impl Engine {
    /// Opens the one that is configured. Its threads say to `report` when they cannot go on.
    pub fn open(config: &Config, report: &Report) -> Result<Engine, ProviderError> {
        match config.provider.store {
            config::Store::Memory => Ok(Engine::Memory(Memory::new())),
            config::Store::Embedded => {
                refuse_a_lost_store(config)?;
                let report = report.clone();
                let options = embedded_options(config, Arc::new(move |error| report.fatal(error)));
                Embedded::open(options).map(Engine::Embedded)
            }
            config::Store::Postgresql => {
                make_place_for_the_key(config)?;
                let report = report.clone();
                let options = postgresql_options(config, Arc::new(move |error| report.fatal(error)));
                Postgresql::open(options).map(Engine::Postgresql)
            }
        }
    }

    /// What the rest of the node sees of it.
    pub fn store(&self) -> Store {
        match self {
            Engine::Embedded(embedded) => embedded.store(),
            Engine::Memory(memory) => memory.store(),
            Engine::Postgresql(postgresql) => postgresql.store(),
        }
    }

    /// Where nodes of a cluster find each other and are rung for, if the store can be asked for that.
    pub fn coordination(&self, name: &str) -> Option<Arc<Coordination>> {
        match self {
            Engine::Embedded(_) | Engine::Memory(_) => None,
            Engine::Postgresql(postgresql) => Some(Arc::new(postgresql.coordination(name))),
        }
    }

    /// Ends its threads; nothing is written any more.
    pub fn close(&self) {
        match self {
            Engine::Embedded(embedded) => embedded.close(),
            Engine::Memory(_) => {}
            Engine::Postgresql(postgresql) => postgresql.close(),
        }
    }
}

/// An empty store beside a key that has sealed something is most likely a disk that is not mounted, or a database that
/// was lost. It is refused before anything is created there.
fn refuse_a_lost_store(config: &Config) -> Result<(), ProviderError> {
    let path = &config.provider.embedded.path;
    if !Vault::has_sealed(config) || !never_had_anything(path)? {
        return Ok(());
    }
    let detail = format!(
        "{} has a key that sealed the secrets of subscriptions ({}), and no database that ever had one: restore the \
         database, or, to begin anew, remove the key",
        path.display(),
        config.auth.secret_key_file.display()
    );
    Err(ProviderError::new(ErrorKind::Corrupt, "embedded.open", detail))
}

/// The key that seals secrets is drawn into the data directory, which no other engine makes. Where the key is given there is
/// nothing to keep there.
fn make_place_for_the_key(config: &Config) -> Result<(), ProviderError> {
    let path = &config.provider.embedded.path;
    if config.auth.secret_key.reveal().is_some() {
        return Ok(());
    }
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| {
        let detail = format!("{} for the key that seals secrets cannot be made", path.display());
        ProviderError::new(ErrorKind::Unavailable, "postgresql.open", detail).because(error)
    })
}

/// The options of the engine over PostgreSQL, as configured.
pub fn postgresql_options(
    config: &Config,
    fatal: Arc<dyn Fn(ProviderError) + Send + Sync>,
) -> flare_postgresql::Options {
    let postgresql = &config.provider.postgresql;
    let tls = match postgresql.tls {
        config::DatabaseTls::Disable => Tls::Disable,
        config::DatabaseTls::Prefer => Tls::Prefer,
        config::DatabaseTls::Require => Tls::Require,
        config::DatabaseTls::VerifyFull => Tls::VerifyFull(postgresql.ca.path().map(Into::into)),
    };
    flare_postgresql::Options {
        url: postgresql.url.reveal().unwrap_or_default().to_owned(),
        schema: postgresql.schema.as_str().to_owned(),
        connections: postgresql.connections,
        committers: postgresql.committers,
        queue_bytes: postgresql.queue_bytes.as_usize(),
        commit_bytes: postgresql.commit_bytes.as_usize(),
        connect_timeout: postgresql.connect_timeout,
        statement_timeout: postgresql.statement_timeout,
        tcp_user_timeout: postgresql.tcp_user_timeout,
        poll_interval: postgresql.poll_interval,
        coordinates: config.coordination() == config::Coordination::Postgresql
            || config.coordination() != config::Coordination::Alone
                && config.bell() == config::Bell::Postgresql,
        tls,
        lossy_failover: postgresql.failover == config::Failover::Lossy,
        // What a node by itself has in memory is all that is in the log: nobody else may write to it.
        alone: config.coordination() == config::Coordination::Alone,
        seed: u64::from_le_bytes(random_bytes()),
        fatal,
    }
}

/// The embedded engine's options, as configured.
fn embedded_options(
    config: &Config,
    fatal: Arc<dyn Fn(ProviderError) + Send + Sync>,
) -> flare_embedded::Options {
    let embedded = &config.provider.embedded;
    flare_embedded::Options {
        path: embedded.path.clone(),
        cache_bytes: embedded.cache.as_usize(),
        queue_bytes: embedded.queue_bytes.as_usize(),
        commit_bytes: embedded.commit_bytes.as_usize(),
        checkpoint_bytes: embedded.checkpoint_bytes.as_usize(),
        fatal,
        ..flare_embedded::Options::new(&embedded.path)
    }
}
