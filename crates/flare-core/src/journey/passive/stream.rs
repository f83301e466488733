//! Streams: a client that stays connected gets notifications as they come, each on a lease, so many unsettled ones at
//! most. What it got is remembered in order, so that on coming back it can say up to where it has it.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use flare_model::ids::{Ordinal, SubscriptionNumber};
use tokio::sync::{mpsc, oneshot};

use super::Refused;
use super::settle::Word;
use crate::journey::subscriber::passive::message::Message;
use crate::journey::subscriber::passive::token::Token;
use crate::journey::worker::Worker;

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
    number: u64,
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
pub struct History {
    /// Bound: `waiting-limit`, which bounds the leases too. When full: the oldest is forgotten, and its lease ends by
    /// a settle or by its time.
    sent: VecDeque<Sent>,
    streams: u64,
}

struct Sent {
    stream: u64,
    id: String,
    token: Token,
}

impl History {
    fn remember(&mut self, sent: Sent, limit: usize) {
        while self.sent.len() >= limit.max(1) {
            self.sent.pop_front();
        }
        self.sent.push_back(sent);
    }

    /// What the stream that sent `id` sent up to it, itself included.
    fn up_to(&self, id: &str) -> Option<Vec<Token>> {
        let last = self.sent.iter().rposition(|sent| sent.id == id)?;
        let stream = self.sent[last].stream;
        let own = |(_, sent): &(usize, &Sent)| sent.stream == stream;
        Some(self.sent.iter().enumerate().take(last + 1).filter(own).map(|(_, sent)| sent.token).collect())
    }
}

impl Worker {
    pub(super) fn open_stream(
        &mut self,
        key: Option<usize>,
        order: StreamOrder,
        reply: oneshot::Sender<Result<Open, Refused>>,
    ) {
        let refused = match key {
            None => Some(Refused::Gone),
            Some(key) => self.no_room_to_wait(key),
        };
        let (Some(key), None) = (key, refused) else {
            let _ = reply.send(Err(refused.unwrap_or(Refused::Gone)));
            return;
        };
        let acknowledged = match &order.last_event_id {
            Some(id) => self.acknowledge(key, id),
            None => Some(Vec::new()),
        };
        let StreamOrder { quantity, lease, .. } = order;
        let (events, received) = mpsc::channel(quantity);
        let Some(passive) = self.passive(key) else { return };
        passive.history.streams += 1;
        let number = passive.history.streams;
        let out = BTreeSet::new();
        passive.streams.push(Stream { number, quantity, lease, events, out, unsent: 0 });
        let open = Open { events: received, acknowledged: acknowledged.as_ref().map(Vec::len) };
        let durable = self.once_durable(key, acknowledged.unwrap_or_default());
        self.tasks.spawn_local(async move {
            if durable.await.is_ok() {
                let _ = reply.send(Ok(open));
            }
        });
        self.ready(key);
    }

    /// Settles everything that a stream sent up to `id` and that is still out.
    fn acknowledge(&mut self, key: usize, id: &str) -> Option<Vec<(u8, Ordinal)>> {
        let tokens = self.passive(key)?.history.up_to(id)?;
        let mut settled = Vec::new();
        for token in tokens {
            if self.is_out(key, &token) {
                self.end_lease(key, token.lane, token.ordinal, Word::Success);
                settled.push((token.lane, token.ordinal));
            }
        }
        Some(settled)
    }

    /// Leases of a stream are durable: they go out, and are remembered. Returns those that nobody takes.
    pub(super) fn send_to_stream(
        &mut self,
        number: SubscriptionNumber,
        events: &mpsc::Sender<StreamEvent>,
        messages: Vec<Message>,
    ) -> Vec<Message> {
        let limit = self.tools.limits.waiting_limit;
        let passive = self.by_number.get(&number).copied().and_then(|key| self.passive(key));
        let mut lost = Vec::new();
        let Some(passive) = passive else { return messages };
        let stream = passive.streams.iter_mut().find(|stream| stream.events.same_channel(events));
        let Some(stream) = stream else { return messages };
        for message in messages {
            stream.unsent = stream.unsent.saturating_sub(1);
            let sent = Sent { stream: stream.number, id: message.id.clone(), token: message.token };
            match events.try_send(message) {
                Ok(()) => passive.history.remember(sent, limit),
                Err(refused) => lost.push(refused.into_inner()),
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::ids::Seq;
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
        let mut history = History::default();
        for (stream, id, seq) in [(1, "a", 1), (2, "b", 2), (1, "c", 3), (1, "d", 4)] {
            history.remember(sent(stream, id, seq), 10);
        }
        assert_eq!(seqs(history.up_to("c")), Some(vec![1, 3]), "not the other stream's, not what came after");
        assert_eq!(seqs(history.up_to("b")), Some(vec![2]));
        assert_eq!(seqs(history.up_to("x")), None);
    }

    #[test]
    fn the_oldest_is_forgotten_when_there_is_no_room() {
        let mut history = History::default();
        for (id, seq) in [("a", 1), ("b", 2), ("c", 3)] {
            history.remember(sent(1, id, seq), 2);
        }
        assert_eq!(seqs(history.up_to("a")), None);
        assert_eq!(seqs(history.up_to("c")), Some(vec![2, 3]));
    }
}
