//! Someone who wants notifications of a passive subscription, and what it gets.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::journey::subscriber::passive::message::Message;
use crate::journey::subscriber::passive::refused::AskRefused;

/// Someone who wants notifications.
pub struct Reservation {
    /// At most so many.
    pub quantity: usize,
    /// For so long.
    pub lease: Duration,
    /// Whether to wait when there is nothing.
    pub patient: bool,
    /// Where they go.
    pub reply: oneshot::Sender<Result<Handout, AskRefused>>,
}

/// What a reservation gets. Dropped before it is [handed over](Receipt::handed_over), its leases go back at once.
#[derive(Default)]
pub struct Handout {
    /// The notifications.
    pub messages: Vec<Message>,
    /// Said once the client's connection has them; there is none where there is nothing to hand over.
    pub receipt: Option<Receipt>,
}

/// The way to say that leases were handed over: until then nobody has them, and whoever drops it gives them back.
pub struct Receipt(oneshot::Sender<()>);

impl Receipt {
    /// One, and what is heard when it is said.
    pub fn new() -> (Receipt, oneshot::Receiver<()>) {
        let (taken, heard) = oneshot::channel();
        (Receipt(taken), heard)
    }

    /// The client's connection has taken what was leased.
    pub fn handed_over(self) {
        // A thread that has stopped has recorded the leases as they are.
        let _ = self.0.send(());
    }
}
