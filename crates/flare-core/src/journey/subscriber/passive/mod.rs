//! What a passive subscription keeps beside its feeds: who waits for something to take, and the leases that are out. In:
//! what `journey/passive` does with it. Out: what there is room for, and who is to be told.

pub mod drive;
pub mod given;
pub mod leases;
pub mod message;
pub mod refused;
pub mod reservation;
pub mod stream;
pub mod token;

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;

use drive::Drive;
use given::GivenToStreams;
use message::Message;
use reservation::Reservation;
use stream::{Stream, StreamEvent};
use token::Token;

/// Bounds of passive mode.
#[derive(Clone, Copy, Debug)]
pub struct PassiveLimits {
    /// The longest lease, and the longest delay of a release.
    pub maximum_lease: Duration,
    /// For how long a delivery on request begins attempts.
    pub maximum_wait: Duration,
    /// Reservations that wait, and streams, of one subscription.
    pub waiters: usize,
}

/// What a passive subscription has beside its feeds.
#[derive(Default)]
pub struct Passive {
    /// A delivery on request.
    pub drive: Option<Drive>,
    /// Those who wait for something to take. Bound: `waiters`, with the streams. When full: refused.
    pub reservations: VecDeque<Reservation>,
    /// Those who take as it comes. Bound: see above.
    pub streams: Vec<Stream>,
    /// What streams were given.
    pub given: GivenToStreams,
    /// It is being served: what that makes ready needs no second look.
    pub serving: bool,
}

impl Passive {
    /// How many attempts may be open, of a delivery on request that is under way.
    pub fn room(&self, in_flight: u32) -> u32 {
        let drive = self.drive.as_ref().filter(|drive| !drive.caller_left());
        drive.map_or(0, |drive| drive.room(in_flight))
    }

    /// Whoever has left wants nothing any more. Answers what was leased for them, and nobody has.
    pub fn forget_those_who_left(&mut self) -> Vec<Token> {
        let mut lost = Vec::new();
        self.reservations.retain(|reservation| {
            let left = reservation.reply.is_closed();
            if left {
                lost.extend(reservation.leased.iter().map(|message| message.token));
            }
            !left
        });
        self.streams.retain(|stream| !stream.events.is_closed());
        lost
    }

    /// Leases of a stream are durable: they go out, and are remembered, so many at most. Answers those that nobody takes.
    pub fn send_to_stream(
        &mut self,
        events: &mpsc::Sender<StreamEvent>,
        messages: Vec<Message>,
        remembered: usize,
    ) -> Vec<Message> {
        let stream = self.streams.iter_mut().find(|stream| stream.events.same_channel(events));
        let Some(stream) = stream else { return messages };
        let mut lost = Vec::new();
        for message in messages {
            let (sent, attempt) = (message.sent.clone(), message.token.attempt);
            match stream.send(message) {
                Some(message) => lost.push(message),
                None => {
                    if let Some(sent) = sent {
                        self.given.remember(sent, attempt, remembered);
                    }
                }
            }
        }
        lost
    }
}
