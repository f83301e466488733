//! The doorbell within one process: whoever rings is heard by all who listen, except by those who are too slow.

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::doorbell::{Doorbell, Heard, Listener, Ring};
use crate::error::{ErrorKind, ProviderError, Result};

/// Rings that a listener may be behind. When full: the oldest go, and the listener hears that it missed some.
const KEPT: usize = 1024;

/// A participant. Clones ring the same bell.
#[derive(Clone)]
pub struct MemoryDoorbell {
    sender: broadcast::Sender<Vec<Ring>>,
}

impl MemoryDoorbell {
    /// A bell of its own.
    pub fn new() -> MemoryDoorbell {
        MemoryDoorbell { sender: broadcast::Sender::new(KEPT) }
    }
}

impl Default for MemoryDoorbell {
    fn default() -> MemoryDoorbell {
        MemoryDoorbell::new()
    }
}

#[async_trait]
impl Doorbell for MemoryDoorbell {
    async fn ring(&self, rings: &[Ring]) -> Result<()> {
        // An error says that nobody listens, which is fine.
        let _ = self.sender.send(rings.to_vec());
        Ok(())
    }

    async fn listen(&self) -> Result<Box<dyn Listener>> {
        // The listener keeps the bell, so that it never ends under it.
        Ok(Box::new(MemoryListener { receiver: self.sender.subscribe(), _bell: self.clone() }))
    }
}

struct MemoryListener {
    receiver: broadcast::Receiver<Vec<Ring>>,
    _bell: MemoryDoorbell,
}

#[async_trait]
impl Listener for MemoryListener {
    async fn next(&mut self) -> Result<Heard> {
        match self.receiver.recv().await {
            Ok(rings) => Ok(Heard::Rings(rings)),
            Err(broadcast::error::RecvError::Lagged(_)) => Ok(Heard::Missed),
            Err(broadcast::error::RecvError::Closed) => {
                Err(ProviderError::new(ErrorKind::Unavailable, "doorbell.next", "the bell is gone"))
            }
        }
    }
}
