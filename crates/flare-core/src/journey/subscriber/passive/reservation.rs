//! Someone who wants notifications of a passive subscription, and what it gets: all that was accepted before it asked, up
//! to its quantity. Lanes become readable one after the other, so what they have is gathered for a moment.

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
    /// Once there is something, and until then, by the monotonic clock: what is on its way from the store is waited for.
    pub gathers_until: Duration,
    /// What was leased for it so far. Nobody has it before it is handed over.
    pub leased: Vec<Message>,
    /// Where they go.
    pub reply: oneshot::Sender<Result<Handout, AskRefused>>,
}

impl Reservation {
    /// How many more it takes.
    pub fn room(&self) -> usize {
        self.quantity.saturating_sub(self.leased.len())
    }

    /// Whether it stays in line. `nothing`: there is nothing to take until something happens that is not under way.
    pub fn waits(&self, nothing: bool, now: Duration) -> bool {
        match self.leased.is_empty() {
            true => self.patient || !nothing,
            false => !nothing && now < self.gathers_until,
        }
    }
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
