//! A client that stays connected. What it was given, in order, is in `given.rs`.

use std::collections::BTreeSet;
use std::time::Duration;

use flare_model::ids::Ordinal;
use tokio::sync::{mpsc, oneshot};

use crate::journey::subscriber::passive::message::Message;

/// What a stream is to be like.
pub struct StreamOrder {
    /// At most so many unsettled notifications.
    pub quantity: usize,
    /// How long each may stay unsettled.
    pub lease: Duration,
    /// The id of the last notification that the client got on the connection before.
    pub last_event_id: Option<String>,
}

/// A stream that was opened.
pub struct Open {
    /// The notifications, as they come.
    pub events: mpsc::Receiver<StreamEvent>,
    /// How many leases the last event id settled; `None` when it is not known here.
    pub acknowledged: Option<usize>,
}

/// What a stream brings.
pub type StreamEvent = Message;

/// A client that stays connected.
pub struct Stream {
    /// Tells its notifications from those of others.
    pub number: u64,
    quantity: usize,
    /// How long each lease is.
    pub lease: Duration,
    /// The way to the connection. Bound: `quantity`. When full: nothing is taken for it.
    pub events: mpsc::Sender<StreamEvent>,
    /// Unsettled. Bound: `quantity`.
    out: BTreeSet<(u8, Ordinal)>,
    /// Taken, and not sent yet: they have room in the channel.
    unsent: usize,
    /// How many it was given so far.
    position: u64,
    /// Heard when what was taken for it last has been sent.
    last: Option<oneshot::Receiver<()>>,
}

/// The turn of some notifications of a stream: they go out after those that were taken before them, so that their
/// positions, which are durable by then, say in which order the client got them.
pub struct Turn {
    before: Option<oneshot::Receiver<()>>,
    /// Dropped when they have been sent.
    _sent: oneshot::Sender<()>,
}

impl Turn {
    /// Waits until those before have been sent.
    pub async fn comes(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = before.await;
        }
    }
}

impl Stream {
    /// One that was just opened, and the end of it for its client.
    pub fn open(number: u64, order: &StreamOrder) -> (Stream, mpsc::Receiver<StreamEvent>) {
        let StreamOrder { quantity, lease, .. } = *order;
        let (events, received) = mpsc::channel(quantity);
        let (out, unsent) = (BTreeSet::new(), 0);
        (Stream { number, quantity, lease, events, out, unsent, position: 0, last: None }, received)
    }

    /// A notification of it goes out; or comes back, where nobody takes it.
    pub fn send(&mut self, message: StreamEvent) -> Option<StreamEvent> {
        self.unsent = self.unsent.saturating_sub(1);
        self.events.try_send(message).err().map(|refused| refused.into_inner())
    }

    /// How many more it can take.
    pub fn room(&self) -> usize {
        let unsettled = self.quantity.saturating_sub(self.out.len());
        unsettled.min(self.events.capacity().saturating_sub(self.unsent))
    }

    /// It gets these, once they are durable and it is their turn. Answers that, and the position of the first.
    pub fn takes(&mut self, documents: impl Iterator<Item = (u8, Ordinal)>) -> (Turn, u64) {
        let (before, first) = (self.out.len(), self.position);
        self.out.extend(documents);
        let taken = self.out.len() - before;
        self.unsent += taken;
        self.position += taken as u64;
        let (sent, heard) = oneshot::channel();
        (Turn { before: self.last.replace(heard), _sent: sent }, first)
    }

    /// A lease has ended, perhaps one of its own.
    pub fn lease_ended(&mut self, lane: u8, ordinal: Ordinal) {
        self.out.remove(&(lane, ordinal));
    }
}
