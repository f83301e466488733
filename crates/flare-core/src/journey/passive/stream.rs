//! Streams: a client that stays connected gets notifications as they come, each on a lease, so many unsettled ones at
//! most. What it says it has, when it comes back, is settled.

use flare_model::ids::{Ordinal, SubscriptionNumber};
use tokio::sync::{mpsc, oneshot};

use crate::journey::passive::settle::LeaseEnd;
use crate::journey::reading::sweeping;
use crate::journey::subscriber::passive::given::{Acknowledged, OnStream};
use crate::journey::subscriber::passive::message::Message;
use crate::journey::subscriber::passive::refused::AskRefused;
use crate::journey::subscriber::passive::stream::{Open, Stream, StreamEvent, StreamOrder};
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;

/// What a client that comes back has said.
#[derive(Default)]
struct Heard {
    /// So many leases are settled.
    settled: usize,
    /// Those of these documents have ended.
    documents: Vec<(u8, Ordinal)>,
}

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
        let heard = match &order.last_event_id {
            Some(id) => self.acknowledge(place, id),
            None => Some(Heard::default()),
        };
        // Leases outlive the process, and say which stream had them.
        let number = self.tools.chance.bits();
        let Some(passive) = self.passive(place) else { return };
        let (stream, received) = Stream::open(number, &order);
        passive.streams.push(stream);
        let acknowledged = heard.as_ref().map(|heard| heard.settled);
        let open = Open { events: received, acknowledged };
        let durable = self.once_durable(place, heard.unwrap_or_default().documents);
        self.tasks.spawn_local(async move {
            if durable.await.is_ok() {
                let _ = reply.send(Ok(open));
            }
        });
        sweeping::go_on(self, place);
        self.ready(place);
    }

    /// Settles everything that a stream sent up to `id` and that is still out. What it sent after that is to be sent
    /// again, and that stream is over: its client is back.
    fn acknowledge(&mut self, place: Place, id: &str) -> Option<Heard> {
        let subscriber = self.subscribers.get_mut(place)?;
        let passive = subscriber.passive.as_deref_mut()?;
        let mut out = Vec::new();
        for slot in subscriber.lanes.iter() {
            for standing in slot.feed.leases() {
                let Some(trouble) = &standing.trouble else { continue };
                let Some(sent) = trouble.lent.as_ref().and_then(|lent| lent.sent.as_ref()) else { continue };
                let document = (slot.id.lane, standing.ordinal);
                out.push(OnStream { document, attempt: trouble.attempts, sent });
            }
        }
        let Acknowledged { has, lacks, stream } = passive.given.acknowledged(id, &out)?;
        passive.streams.retain(|former| Some(former.number) != stream);
        for (lane, ordinal) in &has {
            self.end_lease(place, *lane, *ordinal, LeaseEnd::Success);
        }
        for (lane, ordinal) in &lacks {
            self.lease_is_over(place, *lane, *ordinal, LeaseEnd::Missed);
        }
        Some(Heard { settled: has.len(), documents: [has, lacks].concat() })
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
