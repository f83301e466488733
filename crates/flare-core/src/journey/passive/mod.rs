//! Passive mode: a subscription that gets nothing until it asks. Asks come in ([`Ask`]); attempts are driven to its
//! endpoint (`drive.rs`), or handed out on leases (`reserve.rs`, `stream.rs`) that the client settles (`settle.rs`).
//!
//! It is served by the same delivery thread, through the same [feeds](flare_model::feed): whatever is taken here is
//! taken as a courier would take it. A passive subscription never stands in its host's queue on its own; what makes an
//! active one ready ([`Worker::ready`]) has this look whether somebody waits for it.

mod drive;
mod lease;
mod listing;
mod reserve;
mod settle;
mod stream;

use flare_model::ids::SubscriptionNumber;
use tokio::sync::oneshot;

pub use crate::journey::subscriber::passive::PassiveLimits;
pub use crate::journey::subscriber::passive::drive::{DriveOrder, Driven};
pub use crate::journey::subscriber::passive::message::Message;
pub use crate::journey::subscriber::passive::refused::AskRefused;
pub use crate::journey::subscriber::passive::reservation::{Handout, Receipt, Reservation};
pub use crate::journey::subscriber::passive::stream::{Open, StreamOrder};
pub use crate::journey::subscriber::passive::token::Token;
pub use lease::EndLeases;
pub use listing::LeaseOut;
pub use settle::{LeaseEnd, LeaseOutcome, LeaseOutcomes, LeaseWord, Settlement};

use crate::journey::subscriber::lane::Sweeping;
use crate::journey::subscriber::passive::Passive;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;

/// What a passive subscription is asked for.
pub enum Ask {
    /// Sends notifications to its endpoint.
    Deliver(DriveOrder, oneshot::Sender<Result<Driven, AskRefused>>),
    /// Nothing more is begun by the delivery under way.
    Halt,
    /// Hands notifications out.
    Reserve(Reservation),
    /// Ends leases.
    Settle(Vec<Settlement>, oneshot::Sender<LeaseOutcomes>),
    /// Ends leases before their time. Answers how many, once that is durable.
    EndLeases(EndLeases, oneshot::Sender<usize>),
    /// Which leases are out.
    Leases(oneshot::Sender<Vec<LeaseOut>>),
    /// Hands notifications out as they come.
    Stream(StreamOrder, oneshot::Sender<Result<Open, AskRefused>>),
}

impl Worker {
    /// Does what a passive subscription, or one that has leases, is asked for.
    pub fn passive_ask(&mut self, number: SubscriptionNumber, ask: Ask) {
        let place = self.subscribers.find(number);
        match ask {
            Ask::Deliver(order, reply) => self.begin_drive(place, order, reply),
            Ask::Halt => {
                if let Some(place) = place {
                    self.halt_drive(place);
                }
            }
            Ask::Reserve(reservation) => self.reserve(place, reservation),
            Ask::Settle(settlements, reply) => self.settle_leases(place, number, settlements, reply),
            Ask::EndLeases(ask, reply) => self.end_leases(place, ask, reply),
            Ask::Leases(reply) => {
                let _ = reply.send(place.map_or_else(Vec::new, |place| self.leases_out(place)));
            }
            Ask::Stream(order, reply) => self.open_stream(place, order, reply),
        }
    }

    /// Something may be there to take. True if the subscription may stand in its host's queue for it.
    pub fn passive_turn(&mut self, place: Place) -> bool {
        self.hand_out(place);
        self.drive_may_end(place);
        self.passive(place).is_some_and(|passive| passive.drive.is_some())
    }

    fn passive(&mut self, place: Place) -> Option<&mut Passive> {
        self.subscribers.get_mut(place)?.passive.as_deref_mut()
    }

    /// The mode of a subscription may have changed. Whoever waited for a passive one is answered.
    pub fn change_mode(&mut self, place: Place) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        let wanted = subscriber.compiled.spec.mode == flare_model::subscription::Mode::Passive;
        if wanted == subscriber.passive.is_some() {
            return;
        }
        // How it fared as what it was says nothing about what it is.
        subscriber.fortune = Default::default();
        if wanted {
            subscriber.passive = Some(Box::default());
        } else {
            self.end_drive(place);
            let subscriber = &mut self.subscribers[place];
            let passive = subscriber.passive.take().unwrap_or_default();
            for reservation in passive.reservations {
                let _ = reservation.reply.send(Ok(Default::default()));
            }
        }
    }

    /// A feed at the end of its lane may not have heard yet of a change that its origin was told is accepted: the bell
    /// is on its way, and whoever asks now must not be told that there is nothing.
    fn look_at_the_ends(&mut self, place: Place) {
        let subscriber = &mut self.subscribers[place];
        for lane in subscriber.lanes.numbers() {
            let slot = &subscriber.lanes[lane];
            // It stays parked, and the bell finds it there.
            if slot.parked.is_some() && slot.tail.head() > slot.feed.position() {
                subscriber.mark_unread(lane);
            }
        }
    }

    /// Whether something of a subscription is on its way from the store or to it, so that there may be something to
    /// take in a moment.
    fn is_loading(&self, place: Place) -> bool {
        self.subscribers[place].lanes.iter().any(|slot| {
            let sweeps = slot.aside.sweeping == Sweeping::Reads;
            slot.aside.loading
                || slot.wants_record
                || sweeps
                || slot.aside.fetching > 0
                || !slot.aside.swept.is_empty()
        })
    }

    /// Whether there is nothing to take until something happens that is not under way.
    fn is_idle(&self, place: Place) -> bool {
        let subscriber = &self.subscribers[place];
        let unread = !subscriber.unread.is_empty() && self.may_read(place);
        subscriber.due.is_empty() && !unread && !self.is_loading(place)
    }
}
