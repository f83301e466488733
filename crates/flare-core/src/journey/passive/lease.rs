//! Leases are given, watched and ended: an attempt comes in and its token goes out; when its time is over, or when the
//! client says so, its document goes on as soon as that is durable.

use std::time::Duration;

use flare_model::feed::{Attempt, State, Trouble};
use flare_model::ids::Ordinal;
use tokio::sync::oneshot;

use crate::journey::passive::settle::LeaseEnd;
use crate::journey::subscriber::passive::leases::Recorded;
use crate::journey::subscriber::passive::token::Token;
use crate::journey::worker::Worker;
use crate::journey::worker::alarms::Alarm;
use crate::journey::worker::subscribers::Place;

impl Worker {
    /// Hands an attempt out until `lease` from now. It may be told to the client once it is durable.
    pub(super) fn lease(
        &mut self,
        place: Place,
        lane: u8,
        attempt: &Attempt,
        lease: Duration,
    ) -> Option<Token> {
        let monotonic = self.tools.clock.monotonic();
        let now = self.moment(monotonic);
        let subscriber = &mut self.subscribers[place];
        let number = subscriber.compiled.number;
        let trouble = Trouble {
            attempts: attempt.attempts.saturating_add(1),
            first_attempt_at: attempt.first_attempt_at.unwrap_or(now),
            last_attempt_at: now,
            action: attempt.action,
            status: None,
            error: None,
            response: None,
        };
        let feed = &mut subscriber.lanes[lane].feed;
        feed.lease(attempt.ordinal, now.saturating_add(lease), Box::new(trouble));
        let token = Token::of(number, lane, feed.leased(attempt.ordinal)?);
        self.tools.desk.counts.leased.add(1);
        self.watch_lease(place, (lane, attempt.ordinal), monotonic + lease);
        self.mark_dirty(place, lane, false);
        token
    }

    /// The leases that some lanes of a subscription were opened with. An end too far away comes from a clock that jumped.
    pub fn watch_leases(&mut self, place: Place, lanes: &[u8]) {
        let monotonic = self.tools.clock.monotonic();
        let now = self.moment(monotonic);
        let longest = self.tools.limits.passive.maximum_lease;
        let mut found = Vec::new();
        for slot in lanes.iter().filter_map(|lane| self.subscribers.lane(place, *lane)) {
            for standing in slot.feed.leases() {
                let State::Leased { until } = standing.state else { continue };
                found.push(((slot.id.lane, standing.ordinal), monotonic + until.since(now).min(longest)));
            }
        }
        for (document, end) in found {
            self.watch_lease(place, document, end);
        }
    }

    fn watch_lease(&mut self, place: Place, document: (u8, Ordinal), end: Duration) {
        let subscriber = &mut self.subscribers[place];
        let leases = subscriber.leases.get_or_insert_default();
        if leases.watch(document, end) {
            self.alarms.set(end, Alarm::Leases(place));
        }
    }

    /// Ends the leases whose time is over, and sets the next alarm.
    pub fn expire_leases(&mut self, place: Place) {
        let now = self.tools.clock.monotonic();
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        let Some(leases) = &mut subscriber.leases else { return };
        for (lane, ordinal) in leases.rang(now) {
            // Whoever serves the lane next ends them.
            if self.subscribers.lane(place, lane).is_none_or(|slot| slot.leaving.is_some()) {
                continue;
            }
            self.end_lease(place, lane, ordinal, LeaseEnd::Expired);
        }
        let Some(leases) = &mut self.subscribers[place].leases else { return };
        if let Some(next) = leases.next_alarm(now) {
            self.alarms.set(next, Alarm::Leases(place));
        }
        crate::journey::reading::sweeping::go_on(self, place);
        self.ready(place);
    }

    /// Ends all leases of a subscription, however long they would last.
    pub(super) fn end_leases(&mut self, place: Option<Place>, reply: oneshot::Sender<()>) {
        let leases = place.and_then(|place| Some((place, self.subscribers[place].leases.as_ref()?)));
        let Some((place, leases)) = leases else {
            let _ = reply.send(());
            return;
        };
        // Those that have ended wait for their record, which those who wait for it are told of first.
        let out = leases.documents_out();
        let documents = out.iter().chain(leases.documents_ended()).copied().collect();
        for (lane, ordinal) in out {
            self.end_lease(place, lane, ordinal, LeaseEnd::Expired);
        }
        let durable = self.once_durable(place, documents);
        self.tasks.spawn_local(async move {
            // Without that the thread is stopping, or the subscription is gone.
            if durable.await.is_ok() {
                let _ = reply.send(());
            }
        });
    }

    /// A lease has ended in its feed: when that is durable, the document goes on.
    pub(super) fn lease_ended(&mut self, place: Place, lane: u8, ordinal: Ordinal) {
        let subscriber = &mut self.subscribers[place];
        if let Some(leases) = &mut subscriber.leases {
            leases.ended((lane, ordinal));
        }
        if let Some(passive) = &mut subscriber.passive {
            passive.streams.iter_mut().for_each(|stream| stream.lease_ended(lane, ordinal));
        }
        // The document waits for this record.
        self.mark_dirty(place, lane, true);
    }

    /// Tells when what is said of some documents now is durable; never, if it will not be.
    pub(super) fn once_durable(
        &mut self,
        place: Place,
        documents: Vec<(u8, Ordinal)>,
    ) -> oneshot::Receiver<()> {
        let (durable, told) = oneshot::channel();
        if documents.is_empty() {
            let _ = durable.send(());
            return told;
        }
        for (lane, _) in &documents {
            self.mark_dirty(place, *lane, true);
        }
        let leases = self.subscribers[place].leases.get_or_insert_default();
        leases.tell_when_durable(documents, durable);
        told
    }

    /// A lane's record is durable: whoever waits for it is told, and documents whose leases it ended are due, or wait as
    /// long as was asked.
    pub fn leases_recorded(&mut self, place: Place, lane: u8) {
        let subscriber = &mut self.subscribers[place];
        let Some(leases) = &mut subscriber.leases else { return };
        let feed = &subscriber.lanes[lane].feed;
        let Recorded { go_on, lacking } = leases.recorded(lane, feed);
        if leases.is_empty() {
            subscriber.leases = None;
        }
        if lacking {
            // It was said while that record was under way.
            self.mark_dirty(place, lane, true);
        }
        for (lane, ordinal) in go_on {
            let Some(subscriber) = self.subscribers.get_mut(place) else { return };
            if subscriber.lanes[lane].feed.is_to_be_decided_again(ordinal) {
                subscriber.due.push_front((lane, ordinal));
            } else {
                self.schedule_retry(place, lane, ordinal);
            }
        }
    }
}
