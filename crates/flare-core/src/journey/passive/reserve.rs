//! Reservations: attempts are taken as a courier would take them, become leases, and are handed out once that is
//! durable. A reservation that finds nothing waits in line until there is something, or its caller leaves. One that finds
//! less than it asked for stays at the front for a moment, while more is on its way from the store: what was accepted
//! before it asked is in its answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::{Attempt, Sent};
use flare_model::ids::SubscriptionNumber;
use flare_model::judge::too_old;
use flare_model::pace::Ask;
use flare_wire::{Request, Room};
use tokio::sync::{mpsc, oneshot};

use crate::journey::passive::lease::Lending;
use crate::journey::subscriber::passive::message::Message;
use crate::journey::subscriber::passive::refused::AskRefused;
use crate::journey::subscriber::passive::reservation::{Handout, Receipt, Reservation};
use crate::journey::subscriber::passive::stream::{StreamEvent, Turn};
use crate::journey::subscriber::passive::token::Token;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;
use crate::notification::change::Change;
use crate::notification::compiled::Compiled;
use crate::notification::message as notification;

/// Where a batch of leases goes, once they are durable.
enum To {
    Reservation(Reservation),
    Stream(StreamBatch),
}

/// Some notifications of a stream.
struct StreamBatch {
    stream: u64,
    /// The position of the first.
    first: u64,
    events: mpsc::Sender<StreamEvent>,
    turn: Turn,
}

impl To {
    /// Where the notification at this place of the batch is sent on a stream, if it is.
    fn sent(&self, place: usize, id: &str) -> Option<Sent> {
        let To::Stream(StreamBatch { stream, first, .. }) = self else { return None };
        Some(Sent { stream: *stream, position: first + place as u64, id: id.to_owned() })
    }
}

/// So many that are too old are given up before others have their turn.
const TOO_OLD_AT_ONCE: usize = 100;

type Taken = (u8, Attempt, Arc<Change>);

impl Worker {
    pub(super) fn reserve(&mut self, place: Option<Place>, reservation: Reservation) {
        let refused = match place {
            None => Some(AskRefused::Gone),
            Some(place) => self.no_room_to_wait(place),
        };
        if let Some(refused) = refused {
            let _ = reservation.reply.send(Err(refused));
        } else if let Some(place) = place
            && let Some(passive) = self.passive(place)
        {
            passive.reservations.push_back(reservation);
            self.look_at_the_ends(place);
            self.ready(place);
        }
    }

    /// Why one more cannot wait here, if so. Those who left make room.
    pub(super) fn no_room_to_wait(&mut self, place: Place) -> Option<AskRefused> {
        let limit = self.tools.limits.passive.waiters;
        self.forget_those_who_left(place);
        let Some(passive) = self.passive(place) else { return Some(AskRefused::Active) };
        (passive.reservations.len() + passive.streams.len() >= limit).then_some(AskRefused::Full)
    }

    fn forget_those_who_left(&mut self, place: Place) {
        let Some(passive) = self.passive(place) else { return };
        let lost = passive.forget_those_who_left();
        if !lost.is_empty() {
            self.take_back(place.number(), &lost);
        }
    }

    /// Gives those who wait what there is, each in turn.
    pub(super) fn hand_out(&mut self, place: Place) {
        let Some(passive) = self.passive(place) else { return };
        if passive.serving || passive.reservations.is_empty() && passive.streams.is_empty() {
            return;
        }
        passive.serving = true;
        self.forget_those_who_left(place);
        let mut batches = Vec::new();
        self.take_for_reservations(place, &mut batches);
        self.take_for_streams(place, &mut batches);
        // Only now: a lane that waits for its record is not read.
        for (taken, lease, to) in batches {
            self.lease_batch(place, taken, lease, to);
        }
        if let Some(passive) = self.passive(place) {
            passive.serving = false;
        }
    }

    fn take_for_reservations(&mut self, place: Place, batches: &mut Vec<(Vec<Taken>, Duration, To)>) {
        while let Some(first) = self.passive(place).and_then(|passive| passive.reservations.front()) {
            let room = first.room();
            let taken = self.take_up_to(place, room);
            if taken.is_empty() {
                break;
            }
            let Some(reservation) = self.passive(place).and_then(|passive| passive.reservations.pop_front())
            else {
                break;
            };
            batches.push((taken, reservation.lease, To::Reservation(reservation)));
        }
        let (nothing, now) = (self.nothing_for_now(place), self.tools.clock.monotonic());
        let Some(passive) = self.passive(place) else { return };
        let all = std::mem::take(&mut passive.reservations).into_iter();
        let (wait, answered): (VecDeque<_>, VecDeque<_>) =
            all.partition(|reservation| reservation.waits(nothing, now));
        passive.reservations = wait;
        self.look_again_for_those_who_gather(place);
        for reservation in answered {
            self.answer(place.number(), reservation);
        }
    }

    fn look_again_for_those_who_gather(&mut self, place: Place) {
        let Some(passive) = self.passive(place) else { return };
        let gather = passive.reservations.iter().filter(|reservation| !reservation.leased.is_empty());
        if let Some(until) = gather.map(|reservation| reservation.gathers_until).min() {
            self.wake_at(place, until);
        }
    }

    /// More was leased for a reservation: unless that is all that it asked for, it is first in line for what else there is.
    fn gather(&mut self, number: SubscriptionNumber, reservation: Reservation) {
        let gathers = reservation.room() > 0 && self.tools.clock.monotonic() < reservation.gathers_until;
        let place = self.subscribers.find(number).filter(|_| gathers);
        let passive = place.and_then(|place| self.passive(place));
        if let (Some(place), Some(passive)) = (place, passive) {
            passive.reservations.push_front(reservation);
            self.ready(place);
        } else {
            self.answer(number, reservation);
        }
    }

    /// Hands over what was leased for a reservation, perhaps nothing.
    pub(super) fn answer(&mut self, number: SubscriptionNumber, reservation: Reservation) {
        let Reservation { leased, reply, .. } = reservation;
        if leased.is_empty() {
            let _ = reply.send(Ok(Handout::default()));
            return;
        }
        let messages = self.still_leased(number, leased);
        let worker = self.handle();
        self.tasks.spawn_local(async move {
            let lost = hand_over(reply, messages).await;
            if !lost.is_empty() {
                worker.borrow_mut().take_back(number, &lost);
            }
        });
    }

    fn take_for_streams(&mut self, place: Place, batches: &mut Vec<(Vec<Taken>, Duration, To)>) {
        let count = self.passive(place).map_or(0, |passive| passive.streams.len());
        for index in 0..count {
            let Some(passive) = self.passive(place) else { return };
            let stream = &mut passive.streams[index];
            let (room, lease) = (stream.room(), stream.lease);
            let taken = self.take_up_to(place, room);
            if taken.is_empty() {
                continue;
            }
            let Some(passive) = self.passive(place) else { return };
            let stream = &mut passive.streams[index];
            let documents = taken.iter().map(|(lane, attempt, _)| (*lane, attempt.ordinal));
            let (turn, first) = stream.takes(documents);
            let (stream, events) = (stream.number, stream.events.clone());
            batches.push((taken, lease, To::Stream(StreamBatch { stream, first, events, turn })));
        }
        // The first in line is another one next time.
        if let Some(passive) = self.passive(place)
            && count > 1
        {
            passive.streams.rotate_left(1);
        }
    }

    /// Whether someone who does not wait is to be told that there is nothing.
    fn nothing_for_now(&mut self, place: Place) -> bool {
        let now = self.tools.clock.monotonic();
        let stopping = self.stopping;
        let subscriber = &mut self.subscribers[place];
        let stands = subscriber.stands() || stopping;
        let slowed = !subscriber.rate_wait(now).is_zero();
        stands || slowed || self.is_idle(place)
    }

    fn take_up_to(&mut self, place: Place, quantity: usize) -> Vec<Taken> {
        let mut taken = Vec::new();
        while taken.len() < quantity
            && let Some(next) = self.take_to_lease(place)
        {
            taken.push(next);
        }
        taken
    }

    /// The next attempt, as [`Worker::take`] would take it. How the endpoint fares makes no difference here, nor how
    /// many attempts are open: the client says itself how much it can take.
    fn take_to_lease(&mut self, place: Place) -> Option<Taken> {
        let now = self.tools.clock.monotonic();
        if self.tools.tenancy.as_ref().is_some_and(|tenancy| !tenancy.holds(now, self.thread)) {
            return None;
        }
        let subscriber = &mut self.subscribers[place];
        if self.stopping || subscriber.stands() {
            return None;
        }
        let wait = subscriber.rate_wait(now);
        if !wait.is_zero() {
            self.wake_at(place, now + wait);
            return None;
        }
        let taken = self.take_young(place)?;
        // Until it is leased it counts as an attempt like any other.
        self.subscribers[place].in_flight += 1;
        self.subscribers[place].rate_take(now);
        Some(taken)
    }

    /// The next attempt that is not too old; those that are, are given up on the way.
    fn take_young(&mut self, place: Place) -> Option<Taken> {
        for _ in 0..TOO_OLD_AT_ONCE {
            let (lane, attempt, change) =
                self.take_due(place, Ask::First).or_else(|| self.take_unread(place))?;
            let spec = &self.subscribers[place].compiled.spec;
            let Some(verdict) = too_old(spec, &attempt, change.document.updated_at, self.tools.clock.now())
            else {
                return Some((lane, attempt, change));
            };
            let job = self.begin(place, lane, attempt, change);
            self.give_up_untried(job, verdict);
        }
        self.wake_at(place, self.tools.clock.monotonic());
        None
    }

    fn lease_batch(&mut self, place: Place, taken: Vec<Taken>, lease: Duration, to: To) {
        let compiled = self.subscribers[place].compiled.clone();
        let mut messages = Vec::with_capacity(taken.len());
        for (index, (lane, attempt, change)) in taken.into_iter().enumerate() {
            self.subscribers[place].in_flight -= 1;
            let (id, request) = self.whole_request(&compiled, &change, &attempt);
            let revision = change.document.revision.clone();
            let sent = to.sent(index, &id);
            let lending = Lending { lane, attempt: &attempt, revision: &revision, lease, sent: sent.clone() };
            let Some((token, lease)) = self.lease(place, lending) else { continue };
            if compiled.spec.keeps_state() {
                self.forget_state(place, lane, attempt.ordinal);
            }
            let (document, action) = (change.document.url.to_string(), attempt.action);
            messages.push(Message { id, document, action, revision, token, lease, sent, request });
        }
        let documents = messages.iter().map(|message| (message.token.lane, message.token.ordinal)).collect();
        let durable = self.once_durable(place, documents);
        let (number, worker) = (compiled.number, self.handle());
        self.tasks.spawn_local(async move {
            if durable.await.is_err() {
                return;
            }
            let lost: Vec<Token> = match to {
                To::Reservation(mut reservation) => {
                    reservation.leased.extend(messages);
                    worker.borrow_mut().gather(number, reservation);
                    return;
                }
                To::Stream(StreamBatch { events, mut turn, .. }) => {
                    turn.comes().await;
                    let mut worker = worker.borrow_mut();
                    let messages = worker.still_leased(number, messages);
                    let lost = worker.send_to_stream(number, &events, messages);
                    lost.iter().map(|message| message.token).collect()
                }
            };
            if !lost.is_empty() {
                worker.borrow_mut().take_back(number, &lost);
            }
        });
    }

    /// The request of a lease, and its id. Whole: how it ends may be heard in another life, when nobody knows any more
    /// what was in it.
    fn whole_request(
        &self,
        compiled: &Arc<Compiled>,
        change: &Change,
        attempt: &Attempt,
    ) -> (String, Request) {
        let (now, room) = (self.tools.clock.now(), Room::default());
        let mut request = notification::request(compiled, change, attempt, None, now, room);
        if let (Some(context), Some(tracer)) = (change.trace(), &self.tools.tracer) {
            let first = attempt.attempts == 0 && attempt.replay == 0;
            context.inject(tracer.leased(compiled, context, first), &mut request);
        }
        let id = request.get(notification::WEBHOOK_ID.as_str()).unwrap_or_default();
        (String::from_utf8_lossy(id).into_owned(), request)
    }
}

/// Gives a reservation what it asked for. Returns the leases that nobody has: its caller may leave before the answer is
/// there, and also between the answer and its way to the client.
async fn hand_over(
    reply: oneshot::Sender<Result<Handout, AskRefused>>,
    messages: Vec<Message>,
) -> Vec<Token> {
    let tokens = messages.iter().map(|message| message.token).collect();
    let (receipt, taken) = Receipt::new();
    let _ = reply.send(Ok(Handout { messages, receipt: Some(receipt) }));
    match taken.await {
        Ok(()) => Vec::new(),
        Err(_) => tokens,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::feed::Action;
    use flare_model::ids::{Ordinal, Seq};
    use flare_model::revision::Revision;
    use flare_model::time::Timestamp;
    use flare_wire::{Beginning, Method};

    fn message() -> Message {
        let token = Token {
            number: SubscriptionNumber(1),
            lane: 0,
            ordinal: Ordinal(1),
            seq: Seq(1),
            replay: 0,
            attempt: 1,
            until: Timestamp::from_millis(0),
        };
        let (id, document) = ("msg".to_owned(), "http://origin.test/1".to_owned());
        let (action, revision) = (Action::Create, Revision::Integer(1));
        let beginning = Beginning::new(Method::Post, "client.test", []).expect("a host");
        let request = Request::new(Room::default(), &beginning, |path| path.push('/'));
        Message { id, document, action, revision, token, lease: 1, sent: None, request }
    }

    #[tokio::test]
    async fn leases_go_back_unless_the_connection_has_taken_them() {
        let back = async |caller: fn(oneshot::Receiver<Result<Handout, AskRefused>>)| {
            let (reply, answer) = oneshot::channel();
            let (lost, ()) = tokio::join!(hand_over(reply, vec![message()]), async { caller(answer) });
            lost.len()
        };
        assert_eq!(back(drop).await, 1, "the caller left before or after it was answered, and did not look");
        let leaves = |mut answer: oneshot::Receiver<Result<Handout, AskRefused>>| {
            let handout = answer.try_recv().expect("it is answered").unwrap_or_default();
            assert_eq!(handout.messages.len(), 1);
        };
        assert_eq!(back(leaves).await, 1, "the caller left with the answer in its hands");
        let takes = |mut answer: oneshot::Receiver<Result<Handout, AskRefused>>| {
            let handout = answer.try_recv().expect("it is answered").unwrap_or_default();
            handout.receipt.expect("there is something to hand over").handed_over();
        };
        assert_eq!(back(takes).await, 0);
    }
}
