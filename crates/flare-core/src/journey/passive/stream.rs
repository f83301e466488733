//! Streams: a client that stays connected gets notifications as they come, each on a lease, so many unsettled ones at
//! most. What it says it has, when it comes back, is settled.

use flare_model::ids::{Ordinal, SubscriptionNumber};
use tokio::sync::{mpsc, oneshot};

use crate::journey::passive::settle::LeaseEnd;
use crate::journey::subscriber::passive::message::Message;
use crate::journey::subscriber::passive::refused::AskRefused;
use crate::journey::subscriber::passive::stream::{Open, Stream, StreamEvent, StreamOrder};
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;

impl Worker {
    pub(super) fn open_stream(
        &mut self,
        place: Option<Place>,
        order: StreamOrder,
        reply: oneshot::Sender<Result<Open, AskRefused>>,
    ) {
        let refused = match place {
            None => Some(AskRefused::Gone),
            Some(place) => self.no_room_to_wait(place),
        };
        let (Some(place), None) = (place, refused) else {
            let _ = reply.send(Err(refused.unwrap_or(AskRefused::Gone)));
            return;
        };
        let acknowledged = match &order.last_event_id {
            Some(id) => self.acknowledge(place, id),
            None => Some(Vec::new()),
        };
        let Some(passive) = self.passive(place) else { return };
        let (stream, received) = Stream::open(passive.given.next_stream(), &order);
        passive.streams.push(stream);
        let open = Open { events: received, acknowledged: acknowledged.as_ref().map(Vec::len) };
        let durable = self.once_durable(place, acknowledged.unwrap_or_default());
        self.tasks.spawn_local(async move {
            if durable.await.is_ok() {
                let _ = reply.send(Ok(open));
            }
        });
        self.ready(place);
    }

    /// Settles everything that a stream sent up to `id` and that is still out.
    fn acknowledge(&mut self, place: Place, id: &str) -> Option<Vec<(u8, Ordinal)>> {
        let tokens = self.passive(place)?.given.up_to(id)?;
        let mut settled = Vec::new();
        for token in tokens {
            if self.is_out(place, &token) {
                self.end_lease(place, token.lane, token.ordinal, LeaseEnd::Success);
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
        let passive = self.subscribers.find(number).and_then(|place| self.passive(place));
        let Some(passive) = passive else { return messages };
        passive.send_to_stream(events, messages, limit)
    }
}
