//! Reservations: attempts are taken as a courier would take them, become leases, and are handed out once that is
//! durable. A reservation that finds nothing waits in line until there is something, or its caller leaves.

use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::Attempt;
use http::header::HeaderName;
use tokio::sync::{mpsc, oneshot};

use super::super::change::Change;
use super::super::message as notification;
use super::super::shard::Shard;
use super::message::Message;
use super::stream::StreamEvent;
use super::token::Token;
use super::{Passive, Refused};

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");

/// Someone who wants notifications.
pub struct Reservation {
    /// At most so many.
    pub quantity: usize,
    /// For so long.
    pub lease: Duration,
    /// Whether to wait when there is nothing.
    pub patient: bool,
    /// Where they go.
    pub reply: oneshot::Sender<Result<Handout, Refused>>,
}

/// What a reservation gets.
pub type Handout = Vec<Message>;

/// Where a batch of leases goes, once they are durable.
enum To {
    Reservation(oneshot::Sender<Result<Handout, Refused>>),
    Stream(mpsc::Sender<StreamEvent>),
}

type Taken = (u8, Attempt, Arc<Change>);

impl Shard {
    pub(super) fn reserve(&mut self, key: Option<usize>, reservation: Reservation) {
        let refused = match key {
            None => Some(Refused::Gone),
            Some(key) => self.no_room_to_wait(key),
        };
        if let Some(refused) = refused {
            let _ = reservation.reply.send(Err(refused));
        } else if let Some(key) = key
            && let Some(passive) = self.passive(key)
        {
            passive.reservations.push_back(reservation);
            self.look_at_the_ends(key);
            self.ready(key);
        }
    }

    /// Why one more cannot wait here, if so. Those who left make room.
    pub(super) fn no_room_to_wait(&mut self, key: usize) -> Option<Refused> {
        let limit = self.shared.limits.passive.waiters;
        let Some(passive) = self.passive(key) else { return Some(Refused::Active) };
        passive.forget_those_who_left();
        (passive.reservations.len() + passive.streams.len() >= limit).then_some(Refused::Full)
    }

    /// Gives those who wait what there is, each in turn.
    pub(super) fn hand_out(&mut self, key: usize) {
        let Some(passive) = self.passive(key) else { return };
        if passive.serving || passive.reservations.is_empty() && passive.streams.is_empty() {
            return;
        }
        passive.serving = true;
        passive.forget_those_who_left();
        let mut batches = Vec::new();
        self.take_for_reservations(key, &mut batches);
        self.take_for_streams(key, &mut batches);
        // Only now: a lane that waits for its record is not read.
        for (taken, lease, to) in batches {
            self.lease_batch(key, taken, lease, to);
        }
        if let Some(passive) = self.passive(key) {
            passive.serving = false;
        }
    }

    fn take_for_reservations(&mut self, key: usize, batches: &mut Vec<(Vec<Taken>, Duration, To)>) {
        while let Some(first) = self.passive(key).and_then(|passive| passive.reservations.front()) {
            let quantity = first.quantity;
            let taken = self.take_up_to(key, quantity);
            if taken.is_empty() {
                break;
            }
            let Some(Reservation { lease, reply, .. }) =
                self.passive(key).and_then(|passive| passive.reservations.pop_front())
            else {
                break;
            };
            batches.push((taken, lease, To::Reservation(reply)));
        }
        if self.nothing_for_now(key)
            && let Some(passive) = self.passive(key)
        {
            let (patient, rest) = std::mem::take(&mut passive.reservations)
                .into_iter()
                .partition(|reservation: &Reservation| reservation.patient);
            passive.reservations = patient;
            for reservation in rest {
                let _ = reservation.reply.send(Ok(Vec::new()));
            }
        }
    }

    fn take_for_streams(&mut self, key: usize, batches: &mut Vec<(Vec<Taken>, Duration, To)>) {
        let count = self.passive(key).map_or(0, |passive| passive.streams.len());
        for index in 0..count {
            let Some(passive) = self.passive(key) else { return };
            let stream = &mut passive.streams[index];
            let (room, lease) = (stream.room(), stream.lease);
            let taken = self.take_up_to(key, room);
            if taken.is_empty() {
                continue;
            }
            let Some(passive) = self.passive(key) else { return };
            let stream = &mut passive.streams[index];
            stream.takes(taken.iter().map(|(lane, attempt, _)| (*lane, attempt.ordinal)));
            let to = To::Stream(stream.events.clone());
            batches.push((taken, lease, to));
        }
        // The first in line is another one next time.
        if let Some(passive) = self.passive(key)
            && count > 1
        {
            passive.streams.rotate_left(1);
        }
    }

    /// Whether someone who does not wait is to be told that there is nothing.
    fn nothing_for_now(&mut self, key: usize) -> bool {
        let now = self.shared.clock.monotonic();
        let stopping = self.stopping;
        let subscriber = &mut self.subscribers[key];
        let stands = subscriber.stands() || stopping;
        let slowed = subscriber.bucket.as_mut().is_some_and(|bucket| !bucket.wait(now).is_zero());
        stands || slowed || self.is_idle(key)
    }

    fn take_up_to(&mut self, key: usize, quantity: usize) -> Vec<Taken> {
        let mut taken = Vec::new();
        while taken.len() < quantity
            && let Some(next) = self.take_to_lease(key)
        {
            taken.push(next);
        }
        taken
    }

    /// The next attempt, as [`Shard::take`] would take it. How the endpoint fares makes no difference here, nor how
    /// many attempts are open: the client says itself how much it can take.
    fn take_to_lease(&mut self, key: usize) -> Option<Taken> {
        let now = self.shared.clock.monotonic();
        let subscriber = &mut self.subscribers[key];
        if self.stopping || subscriber.stands() {
            return None;
        }
        if let Some(bucket) = &mut subscriber.bucket {
            let wait = bucket.wait(now);
            if !wait.is_zero() {
                self.wake_at(key, now + wait);
                return None;
            }
        }
        let taken = self.take_due(key).or_else(|| self.take_unread(key))?;
        // Until it is leased it counts as an attempt like any other.
        self.subscribers[key].in_flight += 1;
        if let Some(bucket) = &mut self.subscribers[key].bucket {
            bucket.take();
        }
        Some(taken)
    }

    fn lease_batch(&mut self, key: usize, taken: Vec<Taken>, lease: Duration, to: To) {
        let compiled = self.subscribers[key].compiled.clone();
        let mut messages = Vec::with_capacity(taken.len());
        for (lane, attempt, change) in taken {
            self.subscribers[key].in_flight -= 1;
            let Some(token) = self.lease(key, lane, &attempt, lease) else { continue };
            // Whole: how it ends may be heard in another life, when nobody knows any more what was in it.
            let (now, room) = (self.shared.clock.now(), http::HeaderMap::new());
            let mut request = notification::request(&compiled, &change, &attempt, None, now, room);
            if let (Some(context), Some(tracer)) = (change.trace(), &self.shared.tracer) {
                let first = attempt.attempts == 0 && attempt.replay == 0;
                context.inject(tracer.leased(&compiled, context, first), request.headers_mut());
            }
            if compiled.spec.keeps_state() {
                self.forget_state(key, lane, attempt.ordinal);
            }
            let (head, body) = request.into_parts();
            let id =
                head.headers.get(WEBHOOK_ID).and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
            messages.push(Message {
                id,
                document: change.document.url.to_string(),
                action: attempt.action,
                revision: change.document.revision.clone(),
                token,
                headers: head.headers,
                body,
            });
        }
        let documents = messages.iter().map(|message| (message.token.lane, message.token.ordinal)).collect();
        let durable = self.once_durable(key, documents);
        let (number, shard) = (compiled.number, self.handle());
        self.tasks.spawn_local(async move {
            if durable.await.is_err() {
                return;
            }
            let lost = match to {
                To::Reservation(reply) => {
                    reply.send(Ok(messages)).err().and_then(Result::ok).unwrap_or_default()
                }
                To::Stream(events) => shard.borrow_mut().send_to_stream(number, &events, messages),
            };
            if !lost.is_empty() {
                let tokens: Vec<Token> = lost.iter().map(|message| message.token).collect();
                shard.borrow_mut().take_back(number, &tokens);
            }
        });
    }
}

impl Passive {
    /// Whoever has left wants nothing any more.
    fn forget_those_who_left(&mut self) {
        self.reservations.retain(|reservation| !reservation.reply.is_closed());
        self.streams.retain(|stream| !stream.events.is_closed());
    }
}
