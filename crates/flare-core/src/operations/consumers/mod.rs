//! Consumers: created, replaced, paused and deleted like resources (`catalog`), known as the catalog has them (`known`), read by this node
//! where they are its own (`running`), and shown (`views`, `letters`); what could not be read
//! is read once more on request (`replays`).

mod catalog;
mod known;
mod letters;
mod metrics;
mod replays;
mod running;
mod views;

pub use letters::ConsumerLetterView;
pub use replays::{ConsumerReplayDraft, ConsumerReplayView};
pub use views::{ConsumerStatusView, ConsumerUnitView};

pub(in crate::operations) use running::{Consuming, unit};

use flare_model::ids::ResourceId;

use crate::operations::Failure;

pub(in crate::operations) fn unknown_consumer(id: &ResourceId) -> Failure {
    Failure::NotFound(format!("there is no consumer {id}"))
}
