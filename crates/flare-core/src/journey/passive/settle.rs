//! Settle: what a client says of its leases, or that their time is over → what follows for their documents.

use std::time::Duration;

use flare_model::feed::{Failure, Trouble, Verdict};
use flare_model::ids::{Ordinal, SubscriptionNumber};
use flare_model::retry::RetryPolicy;
use flare_model::time::Timestamp;
use tokio::sync::oneshot;

use crate::journey::merge::Merge;
use crate::journey::reading::sweeping;
use crate::journey::subscriber::passive::message::Message;
use crate::journey::subscriber::passive::token::Token;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;

/// How a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// The client has processed it.
    Success,
    /// The client drops it on purpose.
    Discard,
    /// The client gives it back, to be tried again after this time.
    Release(Duration),
    /// Its time was over before anything was heard of it.
    Expired,
    /// An operator ended it.
    Revoked,
    /// The client came back and said up to where it has what its stream sent, and this came after that.
    Missed,
}

impl LeaseEnd {
    /// Its place among [`LEASES`](crate::observe::count::LEASES).
    fn index(self) -> usize {
        match self {
            LeaseEnd::Success => 0,
            LeaseEnd::Discard => 1,
            LeaseEnd::Release(_) => 2,
            LeaseEnd::Expired => 3,
            LeaseEnd::Revoked => 4,
            LeaseEnd::Missed => 5,
        }
    }
}

/// What a client says of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseWord {
    /// It ends.
    End(LeaseEnd),
    /// It lasts for so long from now, or until its end if that is later.
    Extend(Duration),
}

/// A word about a lease; without a token it is about none that there ever was.
#[derive(Clone, Copy, Debug)]
pub struct Settlement {
    /// Which lease.
    pub token: Option<Token>,
    /// What is said of it.
    pub word: LeaseWord,
}

/// What became of a word about a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeaseOutcome {
    /// It ended the lease.
    Settled,
    /// The lease lasts longer.
    Extended,
    /// The lease was over: it was not settled, or not in time.
    Expired,
    /// There is no such lease: it was settled before, or never given.
    Unknown,
}

/// What became of each, in order.
pub struct LeaseOutcomes(pub Vec<LeaseOutcome>);

impl Merge for LeaseOutcomes {
    /// A lease is out on one thread; to the others it is unknown.
    fn merge(self, other: LeaseOutcomes) -> LeaseOutcomes {
        LeaseOutcomes(self.0.into_iter().zip(other.0).map(|(one, other)| one.min(other)).collect())
    }
}

/// Judges the end of a lease. `trouble` counts its attempt. What comes back is tried again as far as the policy's
/// quantity and time to live go; its intervals are the client's own business.
fn verdict(policy: &RetryPolicy, trouble: &Trouble, word: LeaseEnd, now: Timestamp) -> Verdict {
    let (delay, error) = match word {
        LeaseEnd::Success => return Verdict::Delivered,
        LeaseEnd::Discard => {
            let story = Some(Box::new(Trouble { lent: None, ..trouble.clone() }));
            return Verdict::Discarded { doubtful: false, story };
        }
        LeaseEnd::Release(delay) => (delay, "the client released it"),
        LeaseEnd::Expired => (Duration::ZERO, "the lease ended before it was settled"),
        LeaseEnd::Revoked => (Duration::ZERO, "an operator ended the lease before it was settled"),
        LeaseEnd::Missed => (Duration::ZERO, "the client came back to its stream without it"),
    };
    let unheard = trouble.unheard || !matches!(word, LeaseEnd::Release(_));
    let trouble = Box::new(Trouble { error: Some(error.to_owned()), unheard, lent: None, ..trouble.clone() });
    let late = now.since(trouble.first_attempt_at).saturating_add(delay) > policy.ttl.0;
    // The client had it, so it may have done what it says it has not.
    match trouble.attempts >= policy.quantity || late {
        true => Verdict::GiveUp { doubtful: true, trouble },
        false => Verdict::Retry { due: now.saturating_add(delay), doubtful: true, trouble },
    }
}

impl Worker {
    /// Ends or extends leases by the word of a client. Answered once that is durable.
    pub(super) fn settle_leases(
        &mut self,
        place: Option<Place>,
        number: SubscriptionNumber,
        settlements: Vec<Settlement>,
        reply: oneshot::Sender<LeaseOutcomes>,
    ) {
        let now = self.now();
        let mut outcomes = Vec::with_capacity(settlements.len());
        let mut touched = Vec::new();
        for Settlement { token, word } in settlements {
            let known = token.filter(|token| token.number == number);
            outcomes.push(match (place, known) {
                (Some(place), Some(token)) if self.is_out(place, &token) => {
                    touched.push((token.lane, token.ordinal));
                    self.settle_lease(place, &token, word)
                }
                (Some(_), Some(token)) if token.until <= now => LeaseOutcome::Expired,
                _ => LeaseOutcome::Unknown,
            });
        }
        let Some(place) = place.filter(|_| !touched.is_empty()) else {
            let _ = reply.send(LeaseOutcomes(outcomes));
            return;
        };
        let durable = self.once_durable(place, touched);
        self.tasks.spawn_local(async move {
            if durable.await.is_ok() {
                let _ = reply.send(LeaseOutcomes(outcomes));
            }
        });
        sweeping::go_on(self, place);
        self.ready(place);
    }

    /// Does what is said of a lease that is out.
    fn settle_lease(&mut self, place: Place, token: &Token, word: LeaseWord) -> LeaseOutcome {
        match word {
            LeaseWord::End(end) => {
                self.end_lease(place, token.lane, token.ordinal, end);
                LeaseOutcome::Settled
            }
            LeaseWord::Extend(by) => {
                self.extend_lease(place, token.lane, token.ordinal, by);
                LeaseOutcome::Extended
            }
        }
    }

    /// Whether the lease of a token is out.
    pub(super) fn is_out(&self, place: Place, token: &Token) -> bool {
        let subscriber = &self.subscribers[place];
        let slot = subscriber.lanes.get(token.lane);
        let standing = slot.and_then(|slot| slot.feed.leased(token.ordinal));
        #[cfg(feature = "planted")]
        if flare_model::planted::Bug::LateAnswerSettles.is_planted() {
            return standing.is_some();
        }
        standing.and_then(|standing| Token::of(subscriber.compiled.number, token.lane, standing))
            == Some(*token)
    }

    /// Ends a lease that is out.
    pub(super) fn end_lease(&mut self, place: Place, lane: u8, ordinal: Ordinal, word: LeaseEnd) {
        let now = self.now();
        let subscriber = &mut self.subscribers[place];
        let feed = &mut subscriber.lanes[lane].feed;
        let Some(trouble) = feed.leased(ordinal).and_then(|standing| standing.trouble.as_deref()) else {
            return;
        };
        let verdict = verdict(&subscriber.compiled.spec.retry, trouble, word, now);
        let counts = &self.tools.desk.counts;
        counts.leases[word.index()].add(1);
        counts.judged(&verdict, None);
        let tally = feed.tally_mut();
        match &verdict {
            Verdict::Delivered => {
                tally.delivered += 1;
                tally.last_success_at = Some(now);
                self.tools.desk.delivered_unseen(subscriber.compiled.number, now);
            }
            Verdict::Discarded { .. } => {
                tally.discarded += 1;
                tally.health_mut().last_discard_at = Some(now);
            }
            Verdict::Retry { trouble, .. } | Verdict::GiveUp { trouble, .. } => {
                tally.failed += 1;
                let error = trouble.error.clone().unwrap_or_default();
                tally.last_failure = Some(Box::new(Failure { at: now, status: None, error }));
            }
        }
        feed.settle(ordinal, verdict);
        self.lease_ended(place, lane, ordinal);
    }

    /// Leases that nobody was there to take are taken back.
    pub(super) fn take_back(&mut self, number: SubscriptionNumber, tokens: &[Token]) {
        let Some(place) = self.subscribers.find(number) else { return };
        for token in tokens {
            if self.is_out(place, token) {
                self.take_lease_back(place, token.lane, token.ordinal);
            }
        }
        self.ready(place);
    }

    /// A lease that nobody has goes back.
    pub(super) fn take_lease_back(&mut self, place: Place, lane: u8, ordinal: Ordinal) {
        let now = self.now();
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return };
        slot.feed.take_back(ordinal, now);
        self.lease_ended(place, lane, ordinal);
    }

    /// What may be handed over of what was leased, now that it is durable: not what was over before. What is served by
    /// another thread by now is out there.
    pub(super) fn still_leased(
        &mut self,
        number: SubscriptionNumber,
        mut messages: Vec<Message>,
    ) -> Vec<Message> {
        let Some(place) = self.subscribers.find(number) else { return messages };
        messages.retain(|Message { token, lease, .. }| {
            if self.subscribers.lane(place, token.lane).is_none() {
                return true;
            }
            // Another one of the same document may be out that has the same token: it began in the same millisecond.
            let out = self.is_out(place, token);
            let leases = self.subscribers[place].leases.as_mut().filter(|_| out);
            leases.is_some_and(|leases| leases.give((token.lane, token.ordinal), *lease))
        });
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::duration::HumanDuration;
    use flare_model::feed::Action;

    #[test]
    fn quantity_and_time_to_live_hold_for_leases_too() {
        let policy = RetryPolicy {
            quantity: 3,
            ttl: HumanDuration(Duration::from_secs(10)),
            ..RetryPolicy::default()
        };
        let at = Timestamp::from_millis;
        let told = |attempts, word, now| {
            let trouble = Trouble {
                attempts,
                first_attempt_at: at(0),
                last_attempt_at: at(0),
                action: Action::Create,
                status: None,
                error: None,
                response: None,
                unheard: false,
                has: None,
                lent: None,
            };
            match verdict(&policy, &trouble, word, at(now)) {
                Verdict::Delivered => "delivered".to_owned(),
                Verdict::Discarded { .. } => "discarded".to_owned(),
                Verdict::Retry { due, doubtful, .. } => format!("again at {} {doubtful}", due.millis()),
                Verdict::GiveUp { doubtful, .. } => format!("given up {doubtful}"),
            }
        };
        let release = |ms| LeaseEnd::Release(Duration::from_millis(ms));
        for (attempts, word, now, expected) in [
            (3, LeaseEnd::Success, 20_000, "delivered"),
            (3, LeaseEnd::Discard, 20_000, "discarded"),
            (1, LeaseEnd::Expired, 500, "again at 500 true"),
            (2, release(300), 500, "again at 800 true"),
            (3, release(0), 500, "given up true"),
            (3, LeaseEnd::Expired, 500, "given up true"),
            (1, release(9_500), 500, "again at 10000 true"),
            (1, release(9_501), 500, "given up true"),
            (1, LeaseEnd::Expired, 10_001, "given up true"),
            (2, LeaseEnd::Revoked, 500, "again at 500 true"),
            (3, LeaseEnd::Revoked, 500, "given up true"),
            (2, LeaseEnd::Missed, 500, "again at 500 true"),
        ] {
            assert_eq!(told(attempts, word, now), expected, "{attempts} {word:?} at {now}");
        }
    }
}
