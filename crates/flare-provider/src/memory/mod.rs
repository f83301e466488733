//! The reference engine: maps behind one lock. Calls of the contracts come in; what any other engine would
//! answer goes out. It is meant to be obviously right, and quick enough for tests and demonstrations.
//!
//! "Durable" is the state behind the lock: everything committed is in it, so a crash loses only the handle.
//! There are no commits to share and nothing waits, so nothing is ever `Unavailable` here, except on a handle
//! whose process is taken to be dead.

mod acts;
pub mod bridge;
mod catalog;
mod cluster;
mod documents;
mod doorbell;
mod history;
mod intake;
mod ledger;

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

pub use bridge::MemoryBroker;
pub use cluster::{MemoryCluster, Now};
pub use doorbell::MemoryDoorbell;

use crate::Store;
use crate::acts::Act;
use crate::documents::Witness;
use crate::error::{ErrorKind, ProviderError, Result};

/// A handle of the engine: what a process has while it lives.
#[derive(Clone)]
pub struct Memory {
    engine: Arc<Engine>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Memory {
        Memory::over(Arc::new(Mutex::new(Durable::new())), 0)
    }

    /// The engine through its contracts.
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

    /// A new process over what the old one made durable. The old one is dead: whoever still has a handle of it
    /// gets `Unavailable`, and nothing is written through it any more.
    pub fn reopen(&self) -> Memory {
        let life = {
            let mut durable = self.engine.durable.lock();
            durable.life += 1;
            durable.life
        };
        Memory::over(self.engine.durable.clone(), life)
    }

    /// Another process that is alive at the same time, over the same store.
    pub fn join(&self) -> Memory {
        Memory::over(self.engine.durable.clone(), self.engine.life)
    }

    /// What a restore of a backup taken now would give: a copy of everything, under another incarnation.
    pub fn restored(&self) -> Memory {
        let mut copy = self.engine.durable.lock().clone();
        copy.log.incarnation += 1;
        let life = copy.life;
        Memory::over(Arc::new(Mutex::new(copy)), life)
    }

    fn over(durable: Arc<Mutex<Durable>>, life: u64) -> Memory {
        Memory { engine: Arc::new(Engine { durable, life, witness: Mutex::new(None) }) }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

/// What a process adds to the durable state, and loses when it dies.
struct Engine {
    durable: Arc<Mutex<Durable>>,
    /// Which process this is; only the newest may do anything.
    life: u64,
    witness: Mutex<Option<Arc<dyn Witness>>>,
}

impl Engine {
    /// The state, for one operation: the lock makes it one commit or one snapshot.
    fn durable(&self, operation: &'static str) -> Result<MutexGuard<'_, Durable>> {
        let durable = self.durable.lock();
        if durable.life != self.life {
            return Err(ProviderError::new(ErrorKind::Unavailable, operation, "this process has ended"));
        }
        Ok(durable)
    }
}

/// Everything that outlives a process.
#[derive(Clone)]
struct Durable {
    life: u64,
    entities: catalog::Entities,
    log: documents::Log,
    feeds: ledger::Feeds,
    /// The oldest first. Bound: what is not trimmed.
    acts: VecDeque<Act>,
    readings: intake::Readings,
}

impl Durable {
    fn new() -> Durable {
        Durable {
            life: 0,
            entities: catalog::Entities::default(),
            log: documents::Log { incarnation: 1, sweeper: 0, lanes: Default::default() },
            feeds: ledger::Feeds::default(),
            acts: VecDeque::new(),
            readings: intake::Readings::default(),
        }
    }
}

#[cfg(test)]
mod tests;
