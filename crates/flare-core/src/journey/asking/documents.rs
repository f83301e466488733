//! What people ask about: rows come in, and what their feeds know of them goes out; or which documents a client is
//! owed, a page at a time. Nothing here changes anything.

use std::collections::BTreeMap;

use flare_model::document::Row;
use flare_model::explain::{Condition, InLine};
use flare_model::feed::Glimpse;
use flare_model::ids::{Ordinal, Seq, SubscriptionNumber};
use roaring::RoaringTreemap;

use crate::journey::asking::progress;
use crate::journey::merge::Merge;
use crate::journey::worker::Worker;

/// What is known of some documents of a subscription, in the order asked.
#[derive(Debug)]
pub struct KnownOfDocuments {
    /// By row; nothing for one whose lane another thread serves.
    pub glimpses: Vec<Option<Glimpse>>,
    /// How the subscription stands.
    pub condition: Condition,
}

/// Which documents are asked for, by lane and ordinal.
#[derive(Clone, Copy, Debug)]
pub struct ListOwed {
    /// Of which subscription.
    pub subscription: SubscriptionNumber,
    /// Only those beyond this one.
    pub after: Option<(u8, Ordinal)>,
    /// Answer at most so many. Bound: what may be skipped and a page; each thread answers so many.
    pub limit: usize,
}

/// The documents that a client is owed, of those its feeds have read, and how far these have read.
#[derive(Debug, Default)]
pub struct Owed {
    /// The first of them, in order.
    pub documents: Vec<(u8, Ordinal)>,
    /// All of them, by lane.
    pub lanes: BTreeMap<u8, OwedOfLane>,
    /// How many documents changed there, at most.
    pub to_come: u64,
}

/// What a client is owed of one lane.
#[derive(Debug, Default)]
pub struct OwedOfLane {
    /// Documents that it lacks something of, as far as the reader and sweeps have met them.
    pub all: RoaringTreemap,
    /// Those of them that it is going to be told of.
    pub pending: RoaringTreemap,
    /// From where on there is something that the reader, or a sweep, has yet to come to.
    pub to_come_from: Seq,
    /// How many documents changed there, at most.
    pub to_come: u64,
    /// Whether the client is told of each of those, and of none of them for another reason.
    pub all_to_come: bool,
    /// Up to where there were changes when it was asked.
    pub head: Seq,
    /// How many live documents the reader has come to, if that is known.
    pub read: Option<u64>,
}

impl Owed {
    /// How many documents it lacks something of.
    pub fn total(&self) -> u64 {
        self.lanes.values().map(|lane| lane.all.len()).sum()
    }

    /// How many of them it is going to be told of.
    pub fn pending(&self) -> u64 {
        self.lanes.values().map(|lane| lane.pending.len()).sum()
    }
}

impl Worker {
    /// What is known of these documents; nothing when the subscription is not here.
    pub fn known_of(&mut self, number: SubscriptionNumber, rows: &[(u8, Row)]) -> Option<KnownOfDocuments> {
        let now = self.tools.clock.monotonic();
        let wall = self.moment(now);
        let in_line = self.in_line(number);
        let subscriber = self.subscribers.of_mut(number)?;
        let here = |lane: u8, row| subscriber.lanes.get(lane).map(|slot| slot.feed.glimpse(row));
        let glimpses = rows.iter().map(|(lane, row)| here(*lane, row)).collect();
        let silent_host = subscriber.hosts.iter().find_map(|host| {
            let host = &self.hosts[*host];
            let until = host.breaker.open_until()?;
            Some((host.key.to_string(), until.saturating_sub(now)))
        });
        let fortune = &subscriber.fortune;
        let condition = Condition {
            in_flight: subscriber.in_flight,
            room: subscriber.room(),
            failures: fortune.failures,
            fares: subscriber.fares(),
            throttle: subscriber.throttle(wall, now),
            silent_host,
            rests_for: fortune.rest_until().saturating_sub(now),
            rate_wait: subscriber.rate_wait(now),
            sweeping: subscriber.lanes.iter().any(|lane| lane.feed.sweeping().is_some()),
            in_line,
        };
        Some(KnownOfDocuments { glimpses, condition })
    }

    /// The connections that a subscription waits for, if it does.
    pub(super) fn in_line(&self, number: SubscriptionNumber) -> Option<InLine> {
        let subscriber = self.subscribers.of(number)?;
        match subscriber.waits {
            Some(_) => Some(self.hosts.in_line_for_share(subscriber.host)),
            None => subscriber.hosts.iter().find_map(|host| self.hosts.in_line(*host)),
        }
    }

    /// A page of what is owed; nothing when the subscription is not here.
    pub fn owed(&self, list: ListOwed) -> Option<Owed> {
        let subscriber = self.subscribers.of(list.subscription)?;
        let mut owed = Owed::default();
        let chooses = subscriber.compiled.spec.has_expressions();
        for slot in subscriber.lanes.iter() {
            let lane = slot.id.lane;
            let (from, head) = (slot.feed.to_come_from(), slot.tail.head());
            let between = slot.tail.documents_between(from, head);
            let to_come =
                between.map_or(head.0.saturating_sub(from.0), |beyond| beyond.live + beyond.deleted);
            owed.to_come += to_come;
            let here = slot.feed.owed();
            let before = match list.after {
                Some((after, _)) if lane < after => here.len(),
                Some((after, ordinal)) if lane == after => here.rank(ordinal.0),
                _ => 0,
            };
            let room = list.limit - owed.documents.len();
            owed.documents.extend(part(&here, before, room).map(|ordinal| (lane, ordinal)));
            let read = slot.tail.documents_between(Seq(0), slot.feed.position()).map(|read| read.live);
            let all_to_come = !progress::lagging(&slot.feed, &slot.tail, chooses).is_bound && here.is_empty();
            let pending = slot.feed.pending();
            let here =
                OwedOfLane { all: here, pending, to_come_from: from, to_come, all_to_come, head, read };
            owed.lanes.insert(lane, here);
        }
        Some(owed)
    }
}

impl Merge for KnownOfDocuments {
    fn merge(mut self, other: KnownOfDocuments) -> KnownOfDocuments {
        for (mine, theirs) in self.glimpses.iter_mut().zip(other.glimpses) {
            *mine = mine.take().or(theirs);
        }
        let Condition { in_flight, room, failures, fares, .. } = other.condition;
        let condition = &mut self.condition;
        condition.in_flight += in_flight;
        condition.room += room;
        condition.failures += failures;
        condition.fares = condition.fares.and(fares);
        // It rests or waits only if every part of it does.
        condition.throttle = condition.throttle.merge(other.condition.throttle);
        condition.silent_host = condition.silent_host.take().or(other.condition.silent_host);
        condition.rests_for = condition.rests_for.min(other.condition.rests_for);
        condition.rate_wait = condition.rate_wait.min(other.condition.rate_wait);
        condition.sweeping |= other.condition.sweeping;
        condition.in_line = condition.in_line.take().or(other.condition.in_line);
        self
    }
}

impl Merge for Owed {
    fn merge(mut self, other: Owed) -> Owed {
        self.to_come += other.to_come;
        self.documents.extend(other.documents);
        // A lane has one thread, so nothing comes twice.
        self.documents.sort_unstable();
        self.lanes.extend(other.lanes);
        self
    }
}

/// Members by their place in the order, without walking over those before them.
fn part(set: &RoaringTreemap, from: u64, room: usize) -> impl Iterator<Item = Ordinal> + '_ {
    (from..set.len().min(from.saturating_add(room as u64))).filter_map(|place| set.select(place)).map(Ordinal)
}
