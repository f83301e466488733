//! How one subscription stands as a whole, and what it has given up.

use std::collections::BTreeMap;

use flare_model::explain::InLine;
use flare_model::feed::{Feed, Filtering, Standing, State, SweepKind, TRANSITION, Tally};
use flare_model::health::Fares;
use flare_model::ids::{Ordinal, SubscriptionNumber};
use flare_model::pace::Throttle;
use flare_model::subscription::ReplayLeft;
use flare_model::time::Timestamp;

use crate::journey::log::rows::Beyond;
use crate::journey::log::tail::LaneTail;
use crate::journey::merge::Merge;
use crate::journey::subscriber::decision::Decision;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;
use crate::notification::host::Destination;

/// How many documents a client is going to be told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lagging {
    /// So many, or fewer.
    pub documents: u64,
    /// It may be fewer: some may be counted twice, be deleted without the client having them, or be none of the client's.
    pub is_bound: bool,
}

impl Lagging {
    /// Both together.
    pub fn and(self, other: Lagging) -> Lagging {
        Lagging { documents: self.documents + other.documents, is_bound: self.is_bound || other.is_bound }
    }
}

/// How a subscription stands.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Sum over its lanes.
    pub cursor: u64,
    /// Sum over its lanes.
    pub head: u64,
    /// Documents that the client is going to be told of.
    pub lagging: Lagging,
    /// Documents that wait for a retry.
    pub waiting: u64,
    /// Attempts open now.
    pub in_flight: u64,
    /// Documents given up.
    pub dead_letters: u64,
    /// Documents the client has.
    pub held: u64,
    /// Sums over its lanes.
    pub tally: Tally,
    /// The same, if there is or was a filter.
    pub filtering: Option<Filtering>,
    /// Whether its client fails.
    pub fares: Fares,
    /// The client is asked one thing at a time.
    pub throttle: Option<Throttle>,
    /// The beginning is not through yet.
    pub preparing: bool,
    /// Why everything is gone through, if it is.
    pub sweep: Option<SweepKind>,
    /// It is to be disabled, and begins nothing any more.
    pub decision: Option<Decision>,
    /// A host of its own that does not answer, and when it is tried again.
    pub breaker: Option<(Destination, Timestamp)>,
    /// The connections that it waits for.
    pub in_line: Option<InLine>,
    /// By replay: what is left of it.
    pub replays: BTreeMap<u64, ReplayLeft>,
}

impl Merge for Progress {
    fn merge(mut self, other: Progress) -> Progress {
        self.cursor += other.cursor;
        self.head += other.head;
        self.lagging = self.lagging.and(other.lagging);
        self.waiting += other.waiting;
        self.in_flight += other.in_flight;
        self.dead_letters += other.dead_letters;
        self.held += other.held;
        self.tally.add(&other.tally);
        self.fares = self.fares.and(other.fares);
        self.throttle = self.throttle.merge(other.throttle);
        self.preparing |= other.preparing;
        self.decision = self.decision.merge(other.decision);
        self.sweep = self.sweep.or(other.sweep);
        if let Some(other) = &other.filtering {
            self.filtering.get_or_insert_default().add(other);
        }
        self.breaker = self.breaker.or(other.breaker);
        self.in_line = self.in_line.or(other.in_line);
        for (replay, left) in other.replays {
            let sum = self.replays.entry(replay).or_default();
            sum.waiting += left.waiting;
            sum.sweeping.extend(left.sweeping);
        }
        self
    }
}

/// Of one lane. A document counts twice at most: once because it is owed, and once because it has changed since; so without
/// expressions and deletes the bound is within twice of what is so.
pub(super) fn lagging(feed: &Feed, tail: &LaneTail, chooses: bool) -> Lagging {
    let pending = feed.pending_count();
    let (from, head) = (feed.to_come_from(), tail.head());
    if from >= head {
        return Lagging { documents: pending, is_bound: false };
    }
    let Some(Beyond { live, deleted }) = tail.documents_between(from, head) else {
        return Lagging { documents: pending + (head.0 - from.0), is_bound: true };
    };
    let to_come = live + deleted;
    let sure = deleted == 0 && !chooses && from == feed.position() && !feed.is_ahead();
    let is_bound = to_come > 0 && (!sure || pending > 0);
    Lagging { documents: pending + to_come, is_bound }
}

impl Worker {
    /// How a subscription stands here.
    pub(in crate::journey) fn progress(&self, number: SubscriptionNumber) -> Option<Progress> {
        let place = self.subscribers.find(number)?;
        let subscriber = &self.subscribers[place];
        let leased = subscriber.leases.as_ref().map_or(0, |leases| leases.out()) as u64;
        let (now, monotonic) = (self.tools.clock.now(), self.tools.clock.monotonic());
        let mut seen = Progress {
            lagging: self.lagging(place),
            in_flight: u64::from(subscriber.in_flight) + leased,
            fares: subscriber.fares(),
            throttle: subscriber.throttle(self.moment(monotonic), monotonic),
            decision: subscriber.decision.as_deref().cloned(),
            in_line: self.in_line(number),
            ..Progress::default()
        };
        seen.breaker = subscriber.hosts.iter().find_map(|host| {
            let until = self.hosts[*host].breaker.open_until()?;
            let retry_at = now.saturating_add(until.saturating_sub(monotonic));
            Some((self.hosts[*host].key.clone(), retry_at))
        });
        for lane in subscriber.lanes.iter() {
            let feed = &lane.feed;
            let head = lane.tail.head();
            seen.cursor += feed.cursor().0;
            seen.head += head.0;
            seen.waiting += feed.waiting().len() as u64;
            seen.dead_letters += feed.dead().len();
            seen.held += feed.held().len();
            seen.tally.add(feed.tally());
            if let Some(filtering) = feed.filtering() {
                seen.filtering.get_or_insert_default().add(filtering);
            }
            if let Some(sweep) = feed.sweeping() {
                seen.sweep = seen.sweep.or(Some(sweep.kind));
                seen.preparing |= sweep.kind == SweepKind::Beginning;
                let left = seen.replays.entry(sweep.replay).or_default();
                left.sweeping.push((lane.id.lane, sweep.met));
            }
            let replayed = |standing: &&Standing| !matches!(standing.replay, 0 | TRANSITION);
            for standing in feed.waiting().values().filter(replayed) {
                if matches!(standing.state, State::Waiting { .. } | State::Leased { .. }) {
                    seen.replays.entry(standing.replay).or_default().waiting += 1;
                }
            }
        }
        // What is leased is in flight.
        seen.waiting -= leased;
        Some(seen)
    }

    /// Documents that the client is going to be told of: those that are owed, and those that its readers and sweeps have
    /// yet to come to. Nothing is read for it.
    pub(in crate::journey) fn lagging(&self, place: Place) -> Lagging {
        let Some(subscriber) = self.subscribers.get(place) else { return Lagging::default() };
        let chooses = subscriber.compiled.spec.has_expressions();
        let lanes = subscriber.lanes.iter().map(|lane| lagging(&lane.feed, &lane.tail, chooses));
        lanes.fold(Lagging::default(), Lagging::and)
    }

    /// Which documents were given up, by lane.
    pub(in crate::journey) fn dead(&self, number: SubscriptionNumber) -> Vec<(u8, Ordinal)> {
        let Some(subscriber) = self.subscribers.of(number) else { return Vec::new() };
        let lanes = subscriber.lanes.iter();
        lanes.flat_map(|lane| lane.feed.dead().iter().map(|n| (lane.id.lane, Ordinal(n)))).collect()
    }
}
