//! The store, as configured: the only place that knows which engines there are.

use std::sync::Arc;

use flare_core::config::{self, Config};
use flare_core::journey::Report;
use flare_core::vault::Vault;
use flare_embedded::Embedded;
use flare_embedded::migrations::never_had_subscriptions;
use flare_provider::memory::Memory;
use flare_provider::{ErrorKind, ProviderError, Store};

/// An opened engine.
pub enum Engine {
    /// A file on this machine.
    Embedded(Embedded),
    /// Nothing survives.
    Memory(Memory),
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
        }
    }

    /// What the rest of the node sees of it.
    pub fn store(&self) -> Store {
        match self {
            Engine::Embedded(embedded) => embedded.store(),
            Engine::Memory(memory) => memory.store(),
        }
    }

    /// Ends its threads; nothing is written any more.
    pub fn close(&self) {
        if let Engine::Embedded(embedded) = self {
            embedded.close();
        }
    }
}

/// An empty store beside a key that has sealed something is most likely a disk that is not mounted, or a database that
/// was lost. It is refused before anything is created there.
fn refuse_a_lost_store(config: &Config) -> Result<(), ProviderError> {
    let path = &config.provider.embedded.path;
    if !Vault::has_sealed(config) || !never_had_subscriptions(path)? {
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
