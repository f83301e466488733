//! Leases are given, watched and ended: an attempt comes in and its token goes out; when its time is over, or when the
//! client says so, its document goes on as soon as that is durable.

use std::time::Duration;

use flare_model::feed::{Attempt, Lent, Sent, State, Trouble};
use flare_model::ids::Ordinal;
use flare_model::revision::Revision;
use tokio::sync::oneshot;

use crate::journey::passive::settle::LeaseEnd;
use crate::journey::subscriber::passive::leases::{Recorded, Watched};
use crate::journey::subscriber::passive::token::Token;
use crate::journey::worker::Worker;
use crate::journey::worker::alarms::Alarm;
use crate::journey::worker::subscribers::Place;

/// What is handed out, and for how long.
pub(super) struct Lending<'a> {
    pub lane: u8,
    pub attempt: &'a Attempt,
    pub revision: &'a Revision,
    pub lease: Duration,
    /// Where a stream gets it.
    pub sent: Option<Sent>,
}

/// Which leases are ended by someone else than their client, and why.
#[derive(Clone, Copy, Debug)]
pub struct EndLeases {
    /// Only that of this document.
    pub document: Option<(u8, Ordinal)>,
    /// Why.
    pub word: LeaseEnd,
}

impl Worker {
    /// Hands an attempt out: its token, and the number of the lease. It may be told to the client once it is durable.
    pub(super) fn lease(&mut self, place: Place, lending: Lending<'_>) -> Option<(Token, u64)> {
        let Lending { lane, attempt, revision, lease, sent } = lending;
        let monotonic = self.tools.clock.monotonic();
        let now = self.moment(monotonic);
        let subscriber = &mut self.subscribers[place];
        let number = subscriber.compiled.number;
        let until = now.saturating_add(lease);
        let trouble = Trouble {
            attempts: attempt.attempts.saturating_add(1),
            first_attempt_at: attempt.first_attempt_at.unwrap_or(now),
            last_attempt_at: now,
            action: attempt.action,
            status: None,
            error: None,
            response: None,
            unheard: attempt.unheard,
            has: None,
            lent: Some(Box::new(Lent::new(until, Some(revision), sent))),
        };
        let feed = &mut subscriber.lanes[lane].feed;
        feed.lease(attempt.ordinal, until, Box::new(trouble));
        let token = Token::of(number, lane, feed.leased(attempt.ordinal)?)?;
        self.tools.desk.counts.leased.add(1);
        let given = self.watch_lease(place, (lane, attempt.ordinal), monotonic + lease, false);
        self.mark_dirty(place, lane, false);
        Some((token, given))
    }

    /// A lease that is out lasts for so long from now, or until its end if that is later.
    pub(super) fn extend_lease(&mut self, place: Place, lane: u8, ordinal: Ordinal, by: Duration) {
        let monotonic = self.tools.clock.monotonic();
        let until = self.moment(monotonic).saturating_add(by);
        let subscriber = &mut self.subscribers[place];
        subscriber.lanes[lane].feed.extend(ordinal, until);
        if let Some(leases) = &mut subscriber.leases {
            // The alarm for its former end rings all the same, and sets the next one.
            leases.extend((lane, ordinal), monotonic + by);
        }
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
            // Those who had them before may have handed them over.
            self.watch_lease(place, document, end, true);
        }
    }

    /// Answers the number of the lease.
    fn watch_lease(&mut self, place: Place, document: (u8, Ordinal), end: Duration, given: bool) -> u64 {
        self.leases_given += 1;
        let number = self.leases_given;
        let leases = self.subscribers[place].leases.get_or_insert_default();
        if leases.watch(document, Watched { end, given, number }) {
            self.alarms.set(end, Alarm::Leases(place));
        }
        number
    }

    /// Ends the leases whose time is over, and sets the next alarm.
    pub fn expire_leases(&mut self, place: Place) {
        let now = self.tools.clock.monotonic();
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        let Some(leases) = &mut subscriber.leases else { return };
        for (lane, ordinal) in leases.rang(now) {
            // Whoever serves the lane next ends them.
            if self.subscribers.lane(place, lane).is_none_or(|slot| slot.aside.leaving.is_some()) {
                continue;
            }
            self.lease_is_over(place, lane, ordinal, LeaseEnd::Expired);
        }
        let Some(leases) = &mut self.subscribers[place].leases else { return };
        if let Some(next) = leases.next_alarm(now) {
            self.alarms.set(next, Alarm::Leases(place));
        }
        crate::journey::reading::sweeping::go_on(self, place);
        self.ready(place);
    }

    /// Ends leases of a subscription, however long they would last. Answers how many, once that is durable.
    pub(super) fn end_leases(&mut self, place: Option<Place>, ask: EndLeases, reply: oneshot::Sender<usize>) {
        let leases = place.and_then(|place| Some((place, self.subscribers[place].leases.as_ref()?)));
        let Some((place, leases)) = leases else {
            let _ = reply.send(0);
            return;
        };
        let asked_for = |document: &(u8, Ordinal)| ask.document.is_none_or(|only| only == *document);
        let mut out = leases.documents_out();
        out.retain(asked_for);
        let ended = out.len();
        // Those that have ended wait for their record, which those who wait for it are told of first.
        let before = leases.documents_ended().iter().copied().filter(asked_for);
        let documents = out.iter().copied().chain(before).collect();
        for (lane, ordinal) in out {
            self.lease_is_over(place, lane, ordinal, ask.word);
        }
        let durable = self.once_durable(place, documents);
        self.tasks.spawn_local(async move {
            // Without that the thread is stopping, or the subscription is gone.
            if durable.await.is_ok() {
                let _ = reply.send(ended);
            }
        });
        crate::journey::reading::sweeping::go_on(self, place);
        self.ready(place);
    }

    /// A lease is over by its time, or by somebody's word. If its record took longer than that, nobody has it: then it
    /// counts for nothing.
    pub(super) fn lease_is_over(&mut self, place: Place, lane: u8, ordinal: Ordinal, word: LeaseEnd) {
        let leases = self.subscribers[place].leases.as_ref();
        match leases.is_none_or(|leases| leases.is_given((lane, ordinal))) {
            true => self.end_lease(place, lane, ordinal, word),
            false => self.take_lease_back(place, lane, ordinal),
        }
    }

    /// The leases that nobody has go back: the thread stops, and hands nothing over any more.
    pub fn take_back_what_nobody_has(&mut self) {
        let places: Vec<Place> = self.subscribers.iter().map(|(place, _)| place).collect();
        for place in places {
            let Some(leases) = &self.subscribers[place].leases else { continue };
            let mut nobodys = leases.documents_out();
            nobodys.retain(|document| !leases.is_given(*document));
            for (lane, ordinal) in nobodys {
                self.take_lease_back(place, lane, ordinal);
            }
        }
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

#[cfg(test)]
mod tests {
    use flare_model::document::Row;
    use flare_model::feed::{Everything, Met};
    use flare_model::ids::Seq;
    use tokio::task::LocalSet;

    use super::*;
    use crate::journey::subscriber::Standstill;
    use crate::journey::testing::fixture::{Thread, marked};
    use crate::journey::worker::subscribers::FeedPlace;

    /// Leases a document for no time at all; answers how many attempts then count, and whether the client may have it.
    fn ended(given: bool, end: fn(&mut Worker, Place)) -> (u32, bool) {
        let thread = Thread::new();
        let FeedPlace { place, lane } = thread.open(1, marked(100), Standstill::None);
        let mut worker = thread.worker.borrow_mut();
        let row = Row { ordinal: Ordinal(1), seq: Seq(51), born: Seq(51), before: Seq(0), deleted: false };
        let met = worker.subscribers[place].lanes[lane].feed.read(&row, &mut Everything);
        let Met::Send(attempt) = met else { panic!("{met:?}") };
        let (revision, lease) = (Revision::Integer(1), Duration::ZERO);
        let lending = Lending { lane, attempt: &attempt, revision: &revision, lease, sent: None };
        let (_, number) = worker.lease(place, lending).expect("it is open");
        if given {
            let leases = worker.subscribers[place].leases.as_mut().expect("there is one");
            assert!(leases.give((lane, attempt.ordinal), number));
        }
        end(&mut worker, place);
        let feed = &worker.subscribers[place].lanes[lane].feed;
        assert!(feed.leased(attempt.ordinal).is_none());
        let trouble = feed.waiting()[&attempt.ordinal].trouble.as_ref().expect("it was begun");
        assert_eq!(trouble.lent, None, "what is known of a lease goes with it");
        (trouble.attempts, feed.doubt().contains(attempt.ordinal.0))
    }

    #[tokio::test]
    async fn a_lease_that_is_over_before_anybody_has_it_counts_for_nothing() {
        let all = async {
            assert_eq!(ended(true, Worker::expire_leases), (1, true), "the client had it");
            assert_eq!(ended(false, Worker::expire_leases), (0, false));
            let all = |worker: &mut Worker, place| {
                let ask = EndLeases { document: None, word: LeaseEnd::Revoked };
                worker.end_leases(Some(place), ask, oneshot::channel().0);
            };
            assert_eq!((ended(true, all), ended(false, all)), ((1, true), (0, false)));
            assert_eq!(ended(false, |worker, _| worker.take_back_what_nobody_has()), (0, false));
        };
        LocalSet::new().run_until(all).await;
    }
}
