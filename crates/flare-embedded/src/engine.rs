//! The engine as its contracts see it: a queue before the writer, readers, and the memory they share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flare_provider::{Result, Witness};

use crate::error::Work;
use crate::queue::Queue;
use crate::readers::{Reader, Readers};

/// What the contracts work with.
pub(crate) struct Engine {
    pub queue: Arc<Queue>,
    pub readers: Readers,
    pub witness: Arc<Watch>,
    pub incarnation: u64,
    /// What the sequences that clients are told count on from.
    pub sequences_from: u64,
}

impl Engine {
    /// Asks a reader.
    pub async fn read<T: Send + 'static>(
        &self,
        operation: &'static str,
        question: impl FnOnce(&mut Reader) -> Work<T> + Send + 'static,
    ) -> Result<T> {
        // After a failed sync nobody knows what the disk has, so nothing of it is told.
        match self.queue.broken() {
            Some(failure) => Err(failure.told(operation)),
            None => self.readers.read(operation, question).await,
        }
    }
}

/// Who hears of changes.
#[derive(Default)]
pub(crate) struct Watch {
    witness: Mutex<Option<Arc<dyn Witness>>>,
}

impl Watch {
    /// From now on this one.
    pub fn set(&self, witness: Arc<dyn Witness>) {
        *self.lock() = Some(witness);
    }

    /// Who hears of changes now.
    pub fn get(&self) -> Option<Arc<dyn Witness>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn Witness>>> {
        // It is replaced whole.
        self.witness.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
