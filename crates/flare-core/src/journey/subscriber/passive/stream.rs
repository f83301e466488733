//! A client that stays connected, and what it was given: in order, so that on coming back it can say up to where it has it.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use flare_model::ids::Ordinal;
use tokio::sync::mpsc;

use crate::journey::subscriber::passive::message::Message;
use crate::journey::subscriber::passive::token::Token;

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
}

impl Stream {
    /// One that was just opened, and the end of it for its client.
    pub fn open(number: u64, order: &StreamOrder) -> (Stream, mpsc::Receiver<StreamEvent>) {
        let StreamOrder { quantity, lease, .. } = *order;
        let (events, received) = mpsc::channel(quantity);
        (Stream { number, quantity, lease, events, out: BTreeSet::new(), unsent: 0 }, received)
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

    /// It gets these, once they are durable.
    pub fn takes(&mut self, documents: impl Iterator<Item = (u8, Ordinal)>) {
        let before = self.out.len();
        self.out.extend(documents);
        self.unsent += self.out.len() - before;
    }

    /// A lease has ended, perhaps one of its own.
    pub fn lease_ended(&mut self, lane: u8, ordinal: Ordinal) {
        self.out.remove(&(lane, ordinal));
    }
}

/// What streams were given, in order.
#[derive(Default)]
pub struct GivenToStreams {
    /// Bound: `waiting-limit`, which bounds the leases too. When full: the oldest is forgotten, and its lease ends by
    /// a settle or by its time.
    sent: VecDeque<Sent>,
    streams: u64,
}

/// A notification that a stream was given.
pub struct Sent {
    /// By which stream.
    pub stream: u64,
    /// Its id.
    pub id: String,
    /// Its lease.
    pub token: Token,
}

impl GivenToStreams {
    /// One more stream is opened. Answers its number.
    pub fn next_stream(&mut self) -> u64 {
        self.streams += 1;
        self.streams
    }

    /// Remembers one, and so many at most.
    pub fn remember(&mut self, sent: Sent, limit: usize) {
        while self.sent.len() >= limit.max(1) {
            self.sent.pop_front();
        }
        self.sent.push_back(sent);
    }

    /// What the stream that sent `id` sent up to it, itself included.
    pub fn up_to(&self, id: &str) -> Option<Vec<Token>> {
        let last = self.sent.iter().rposition(|sent| sent.id == id)?;
        let stream = self.sent[last].stream;
        let own = |(_, sent): &(usize, &Sent)| sent.stream == stream;
        Some(self.sent.iter().enumerate().take(last + 1).filter(own).map(|(_, sent)| sent.token).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::ids::Seq;
    use flare_model::ids::SubscriptionNumber;
    use flare_model::time::Timestamp;

    fn sent(stream: u64, id: &str, seq: u64) -> Sent {
        let token = Token {
            number: SubscriptionNumber(1),
            lane: 0,
            ordinal: Ordinal(seq),
            seq: Seq(seq),
            replay: 0,
            attempt: 1,
            until: Timestamp::from_millis(0),
        };
        Sent { stream, id: id.to_owned(), token }
    }

    fn seqs(tokens: Option<Vec<Token>>) -> Option<Vec<u64>> {
        tokens.map(|tokens| tokens.iter().map(|token| token.seq.0).collect())
    }

    #[test]
    fn an_id_stands_for_all_that_its_stream_sent_before_it() {
        let mut given = GivenToStreams::default();
        for (stream, id, seq) in [(1, "a", 1), (2, "b", 2), (1, "c", 3), (1, "d", 4)] {
            given.remember(sent(stream, id, seq), 10);
        }
        assert_eq!(seqs(given.up_to("c")), Some(vec![1, 3]), "not the other stream's, not what came after");
        assert_eq!(seqs(given.up_to("b")), Some(vec![2]));
        assert_eq!(seqs(given.up_to("x")), None);
    }

    #[test]
    fn the_oldest_is_forgotten_when_there_is_no_room() {
        let mut given = GivenToStreams::default();
        for (id, seq) in [("a", 1), ("b", 2), ("c", 3)] {
            given.remember(sent(1, id, seq), 2);
        }
        assert_eq!(seqs(given.up_to("a")), None);
        assert_eq!(seqs(given.up_to("c")), Some(vec![2, 3]));
    }
}
