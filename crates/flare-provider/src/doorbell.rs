//! Doorbell: how nodes hear quickly that there is something to look at. Rings may be lost, doubled, late and out of order:
//! nothing that has to be right rests on them, because whoever listens also looks from time to time.

use async_trait::async_trait;
use flare_model::ids::{LaneId, Seq};

use crate::error::Result;

/// What there is to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ring {
    /// A lane has changes up to here.
    Lane {
        /// The lane.
        lane: LaneId,
        /// Its newest change, as the one who rings knows it.
        head: Seq,
    },
    /// The catalog has this version.
    Catalog {
        /// Its version, as the one who rings knows it.
        version: u64,
    },
}

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// These rings, of one call of [`Doorbell::ring`] or several.
    Rings(Vec<Ring>),
    /// Some rings were surely missed: look at everything now rather than when it is time to.
    Missed,
}

/// The doorbell.
#[async_trait]
pub trait Doorbell: Send + Sync {
    /// Rings for all who listen, the caller's own listeners included. An answer says that it was sent, or is about to be with what
    /// else is rung meanwhile, not that anybody heard it;
    /// an error says nothing more than that it may not have been. Not to be repeated: the next ring says as much. A caller that has
    /// much to say gathers it and rings seldom.
    async fn ring(&self, rings: &[Ring]) -> Result<()>;

    /// Listens. What is rung after this was answered is heard, unless it is lost.
    async fn listen(&self) -> Result<Box<dyn Listener>>;
}

/// One who listens.
#[async_trait]
pub trait Listener: Send {
    /// Waits for the next rings. `Unavailable`: nothing can be heard at the moment; called again it listens anew, and then hears
    /// later rings. A call that is dropped midway loses nothing that was not lost anyway.
    async fn next(&mut self) -> Result<Heard>;
}
