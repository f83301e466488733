//! The leases of a subscription on their thread: when each ends, by the monotonic clock, and those that have ended and
//! wait for their record.

use std::collections::BTreeMap;
use std::time::Duration;

use flare_model::feed::{Attempt, State, Trouble};
use flare_model::ids::{Ordinal, SubscriptionNumber};
use tokio::sync::oneshot;

use super::settle::Word;
use crate::journey::subscriber::passive::token::Token;
use crate::journey::worker::{Alarm, Worker};

/// What is known of leases beyond the feeds. A subscription without any has none of this.
pub struct Leases {
    /// When each ends, monotonic. Bound: the documents that wait, see `waiting-limit`.
    ends: BTreeMap<(u8, Ordinal), Duration>,
    /// Ended, and not recorded yet: after that to be tried again, decided again, or neither. Bound: see above.
    ended: Vec<(u8, Ordinal)>,
    /// The earliest alarm that is set, monotonic.
    alarm: Duration,
    /// Who waits for records. Bound: requests being answered.
    pending: Vec<Pending>,
}

/// Someone who wants to know when all that is said of some documents is durable.
struct Pending {
    documents: Vec<(u8, Ordinal)>,
    durable: oneshot::Sender<()>,
}

impl Default for Leases {
    fn default() -> Self {
        Leases { ends: BTreeMap::new(), ended: Vec::new(), alarm: Duration::MAX, pending: Vec::new() }
    }
}

impl Leases {
    /// How many are out.
    pub fn out(&self) -> usize {
        self.ends.len()
    }

    /// Lanes are served elsewhere from now on; whoever serves them next ends their leases. Whether nothing is left.
    pub fn let_go(&mut self, lanes: &[u8]) -> bool {
        self.ends.retain(|(lane, _), _| !lanes.contains(lane));
        self.ended.retain(|(lane, _)| !lanes.contains(lane));
        for waits in &mut self.pending {
            // It was recorded before it went.
            waits.documents.retain(|(lane, _)| !lanes.contains(lane));
        }
        for waits in self.pending.extract_if(.., |waits| waits.documents.is_empty()) {
            let _ = waits.durable.send(());
        }
        self.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.ended.is_empty() && self.pending.is_empty()
    }

    /// Those that are over.
    fn over(&self, now: Duration) -> Vec<(u8, Ordinal)> {
        let over = self.ends.iter().filter(|(_, end)| **end <= now);
        over.map(|(document, _)| *document).collect()
    }
}

impl Worker {
    /// Hands an attempt out until `lease` from now. It may be told to the client once it is durable.
    pub(super) fn lease(
        &mut self,
        key: usize,
        lane: u8,
        attempt: &Attempt,
        lease: Duration,
    ) -> Option<Token> {
        let monotonic = self.tools.clock.monotonic();
        let now = self.moment(monotonic);
        let subscriber = &mut self.subscribers[key];
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
        let feed = &mut subscriber.lanes[usize::from(lane)].feed;
        feed.lease(attempt.ordinal, now.saturating_add(lease), Box::new(trouble));
        let token = Token::of(number, lane, feed.leased(attempt.ordinal)?);
        self.tools.desk.counts.leased.add(1);
        self.watch_lease(key, (lane, attempt.ordinal), monotonic + lease);
        self.mark_dirty(key, lane, false);
        token
    }

    /// The leases that some lanes of a subscription were opened with. An end too far away comes from a clock that jumped.
    pub fn watch_leases(&mut self, key: usize, lanes: &[u8]) {
        let monotonic = self.tools.clock.monotonic();
        let now = self.moment(monotonic);
        let longest = self.tools.limits.passive.maximum_lease;
        let mut found = Vec::new();
        for slot in lanes.iter().filter_map(|lane| self.subscribers[key].lanes.get(*lane)) {
            for standing in slot.feed.leases() {
                let State::Leased { until } = standing.state else { continue };
                found.push(((slot.id.lane, standing.ordinal), monotonic + until.since(now).min(longest)));
            }
        }
        for (document, end) in found {
            self.watch_lease(key, document, end);
        }
    }

    fn watch_lease(&mut self, key: usize, document: (u8, Ordinal), end: Duration) {
        let subscriber = &mut self.subscribers[key];
        let number = subscriber.compiled.number;
        let leases = subscriber.leases.get_or_insert_default();
        leases.ends.insert(document, end);
        if end < leases.alarm {
            leases.alarm = end;
            self.set_alarm(end, Alarm::Leases(key, number));
        }
    }

    /// Ends the leases whose time is over, and sets the next alarm.
    pub fn expire_leases(&mut self, key: usize, number: SubscriptionNumber) {
        let now = self.tools.clock.monotonic();
        let Some(subscriber) = self.subscriber(key, number) else { return };
        let Some(leases) = &mut subscriber.leases else { return };
        // A later alarm, of a time when more were out, has nothing to do.
        if leases.alarm <= now {
            leases.alarm = Duration::MAX;
        }
        for (lane, ordinal) in leases.over(now) {
            // Whoever serves the lane next ends them.
            if self.subscribers[key].lanes.get(lane).is_none_or(|slot| slot.leaving.is_some()) {
                continue;
            }
            self.end_lease(key, lane, ordinal, Word::Expired);
        }
        let Some(leases) = &mut self.subscribers[key].leases else { return };
        // Those of lanes that are about to leave are over, and stay so.
        let next = leases.ends.values().filter(|end| **end > now).min().copied();
        if let Some(next) = next.filter(|next| *next < leases.alarm) {
            leases.alarm = next;
            self.set_alarm(next, Alarm::Leases(key, number));
        }
        crate::journey::reading::sweeping::go_on(self, key);
        self.ready(key);
    }

    /// Ends all leases of a subscription, however long they would last.
    pub(super) fn end_leases(&mut self, key: Option<usize>, reply: oneshot::Sender<()>) {
        let leases = key.and_then(|key| Some((key, self.subscribers[key].leases.as_ref()?)));
        let Some((key, leases)) = leases else {
            let _ = reply.send(());
            return;
        };
        // Those that have ended wait for their record, which those who wait for it are told of first.
        let out: Vec<(u8, Ordinal)> = leases.ends.keys().copied().collect();
        let documents = out.iter().chain(&leases.ended).copied().collect();
        for (lane, ordinal) in out {
            self.end_lease(key, lane, ordinal, Word::Expired);
        }
        let durable = self.once_durable(key, documents);
        self.tasks.spawn_local(async move {
            // Without that the thread is stopping, or the subscription is gone.
            if durable.await.is_ok() {
                let _ = reply.send(());
            }
        });
    }

    /// A lease has ended in its feed: when that is durable, the document goes on.
    pub(super) fn lease_ended(&mut self, key: usize, lane: u8, ordinal: Ordinal) {
        let subscriber = &mut self.subscribers[key];
        if let Some(leases) = &mut subscriber.leases {
            leases.ends.remove(&(lane, ordinal));
            // Even if nothing is owed: the reader may meet a newer change before that is durable.
            leases.ended.push((lane, ordinal));
        }
        if let Some(passive) = &mut subscriber.passive {
            passive.streams.iter_mut().for_each(|stream| stream.lease_ended(lane, ordinal));
        }
        // The document waits for this record.
        self.mark_dirty(key, lane, true);
    }

    /// Tells when what is said of some documents now is durable; never, if it will not be.
    pub(super) fn once_durable(
        &mut self,
        key: usize,
        documents: Vec<(u8, Ordinal)>,
    ) -> oneshot::Receiver<()> {
        let (durable, told) = oneshot::channel();
        if documents.is_empty() {
            let _ = durable.send(());
            return told;
        }
        for (lane, _) in &documents {
            self.mark_dirty(key, *lane, true);
        }
        let leases = self.subscribers[key].leases.get_or_insert_default();
        leases.pending.push(Pending { documents, durable });
        told
    }

    /// A lane's record is durable: whoever waits for it is told, and documents whose leases it ended are due, or wait as
    /// long as was asked.
    pub fn leases_recorded(&mut self, key: usize, lane: u8) {
        let subscriber = &mut self.subscribers[key];
        let Some(leases) = &mut subscriber.leases else { return };
        let feed = &subscriber.lanes[usize::from(lane)].feed;
        let later = |document: &(u8, Ordinal)| document.0 != lane || feed.is_unrecorded(document.1);
        let (later, now) = leases.ended.drain(..).partition(later);
        leases.ended = later;
        let now: Vec<(u8, Ordinal)> = now;
        let mut lacking = false;
        for mut waits in std::mem::take(&mut leases.pending) {
            waits.documents.retain(|(other, ordinal)| *other != lane || feed.is_pending(*ordinal));
            lacking |= waits.documents.iter().any(|(other, _)| *other == lane);
            if waits.documents.is_empty() {
                let _ = waits.durable.send(());
            } else {
                leases.pending.push(waits);
            }
        }
        if leases.is_empty() {
            subscriber.leases = None;
        }
        if lacking {
            // It was said while that record was under way.
            self.mark_dirty(key, lane, true);
        }
        for (lane, ordinal) in now {
            let subscriber = &mut self.subscribers[key];
            if subscriber.lanes[usize::from(lane)].feed.is_to_be_decided_again(ordinal) {
                subscriber.due.push_front((lane, ordinal));
            } else {
                self.schedule_retry(key, lane, ordinal);
            }
        }
    }
}
