//! The ledger in memory: records come in and are applied to feeds; feeds as found after a restart go out.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use flare_model::feed::{
    Ahead, Filtering, Kept, Note, Record, Saved, Standing, State, Sweep, SweepKind, Tally,
};
use flare_model::ids::{FeedId, LaneId, Ordinal, Seq, SubscriptionNumber};
use roaring::RoaringTreemap;

use super::{Durable, Engine};
use crate::catalog::{NewEntity, Start};
use crate::error::{Conflict, ErrorKind, ProviderError, Result};
use crate::ledger::{FeedNeeds, FeedOwes, FeedSummary, FeedWrite, Ledger, ListStandings, Opened};

/// All feeds of all subscriptions.
#[derive(Clone, Default)]
pub(super) struct Feeds {
    /// The highest epoch given out or used; it outlives the feeds it was used for.
    last_epoch: u64,
    by_id: BTreeMap<FeedId, Feed>,
}

#[derive(Clone)]
struct Feed {
    epoch: u64,
    lane: LaneId,
    /// Which log the numbers below belong to.
    incarnation: u64,
    cursor: Seq,
    issued: Seq,
    judging: Seq,
    unjudged: RoaringTreemap,
    judged: RoaringTreemap,
    ahead: Ahead,
    held: RoaringTreemap,
    standings: BTreeMap<Ordinal, Standing>,
    since: Option<Seq>,
    sweep: Option<Sweep>,
    tally: Tally,
    life: u64,
    /// With the life that wrote them.
    kept: BTreeMap<Ordinal, (u64, Arc<Kept>)>,
    filtering: Option<Box<Filtering>>,
    notes: BTreeMap<Ordinal, Note>,
}

impl Feeds {
    pub fn create(
        &mut self,
        subscription: SubscriptionNumber,
        lane: LaneId,
        tail: Seq,
        new: &NewEntity,
        incarnation: u64,
    ) {
        let beginning = Sweep { replay: 0, kind: SweepKind::Beginning, position: Seq(0), end: tail, met: 0 };
        let feed = Feed {
            epoch: 0,
            lane,
            incarnation,
            cursor: tail,
            issued: tail,
            judging: Seq(0),
            unjudged: RoaringTreemap::new(),
            judged: RoaringTreemap::new(),
            ahead: Ahead::default(),
            held: RoaringTreemap::new(),
            standings: BTreeMap::new(),
            since: new.history.then_some(tail),
            sweep: (new.start == Start::Beginning && tail > Seq(0)).then_some(beginning),
            tally: Tally::default(),
            life: 0,
            kept: BTreeMap::new(),
            filtering: None,
            notes: BTreeMap::new(),
        };
        self.by_id.insert(FeedId { subscription, lane: lane.index }, feed);
    }

    pub fn delete(&mut self, subscription: SubscriptionNumber) {
        self.by_id.retain(|id, _| id.subscription != subscription);
    }

    fn of(&self, subscription: SubscriptionNumber) -> impl Iterator<Item = (u8, &Feed)> {
        let lanes = FeedId { subscription, lane: 0 }..=FeedId { subscription, lane: u8::MAX };
        self.by_id.range(lanes).map(|(id, feed)| (id.lane, feed))
    }
}

impl Feed {
    /// Everything in a record is absolute or a set, so applying it twice is the same as once.
    fn apply(&mut self, record: Record) {
        self.cursor = record.cursor;
        self.issued = record.issued;
        self.judging = record.judging;
        self.unjudged = record.unjudged;
        self.judged = record.judged;
        self.ahead = record.ahead;
        self.held.extend(record.held.iter().map(|ordinal| ordinal.0));
        for ordinal in record.dropped {
            self.held.remove(ordinal.0);
        }
        for ordinal in record.cleared {
            self.standings.remove(&ordinal);
        }
        for standing in record.standings {
            self.standings.insert(standing.ordinal, standing);
        }
        self.since = record.since;
        self.sweep = record.sweep;
        self.tally = record.tally;
        self.life = record.life;
        for ordinal in record.forgotten {
            self.kept.remove(&ordinal);
        }
        for (ordinal, state) in record.kept {
            self.kept.insert(ordinal, (record.life, state));
        }
        self.filtering = record.filtering;
        for ordinal in record.unnoted {
            self.notes.remove(&ordinal);
        }
        self.notes.extend(record.notes.into_iter().map(|note| (note.ordinal, note)));
    }

    fn saved(&self, incarnation: u64) -> Saved {
        let dead = || self.standings.values().filter(|standing| standing.state == State::GaveUp);
        let notes = || self.notes.values();
        let alive = self.standings.values().filter(|standing| standing.state != State::GaveUp);
        Saved {
            cursor: self.cursor,
            issued: self.issued,
            judging: self.judging,
            unjudged: self.unjudged.clone(),
            judged: self.judged.clone(),
            ahead: self.ahead.clone(),
            held: self.held.clone(),
            standings: alive.cloned().collect(),
            dead: dead().map(|standing| standing.ordinal.0).collect(),
            dead_in_doubt: dead()
                .filter(|standing| standing.doubt)
                .map(|standing| standing.ordinal.0)
                .collect(),
            since: self.since,
            sweep: self.sweep.clone(),
            tally: self.tally.clone(),
            life: self.life,
            filtering: self.filtering.clone(),
            noted: notes().map(|note| note.ordinal.0).collect(),
            untold: notes().filter(|note| !note.left.lags()).map(|note| note.ordinal.0).collect(),
            strange: self.incarnation != incarnation,
        }
    }
}

impl Durable {
    /// A feed as it would be found.
    fn found(&self, id: FeedId, feed: &Feed) -> Opened {
        Opened { feed: id, saved: feed.saved(self.log.incarnation), head: self.log.head(feed.lane) }
    }

    /// The feeds of a lane, of subscriptions beyond one.
    fn feeds_of(&self, lane: LaneId, after: SubscriptionNumber) -> impl Iterator<Item = Opened> {
        let of_lane = move |(id, feed): &(&FeedId, &Feed)| feed.lane == lane && id.subscription.0 > after.0;
        self.feeds.by_id.iter().filter(of_lane).map(|(id, feed)| self.found(*id, feed))
    }

    fn open(&mut self, feeds: &[FeedId], epoch: u64) -> Result<Vec<Opened>> {
        const OPERATION: &str = "ledger.open";
        let newer = |id: &&FeedId| self.feeds.by_id.get(id).is_some_and(|feed| feed.epoch > epoch);
        if let Some(id) = feeds.iter().find(newer) {
            return Err(fenced(OPERATION, *id));
        }
        self.feeds.last_epoch = self.feeds.last_epoch.max(epoch);
        let mut opened = Vec::with_capacity(feeds.len());
        for id in feeds {
            let Some(feed) = self.feeds.by_id.get_mut(id) else { continue };
            feed.epoch = epoch;
            let saved = feed.saved(self.log.incarnation);
            opened.push(Opened { feed: *id, saved, head: self.log.head(feed.lane) });
        }
        Ok(opened)
    }

    fn write(&mut self, write: FeedWrite) -> Result<()> {
        const OPERATION: &str = "ledger.write";
        let Some(feed) = self.feeds.by_id.get_mut(&write.feed) else {
            return Err(ProviderError::conflict(OPERATION, Conflict::Feed));
        };
        let is_fenced = feed.epoch != write.epoch;
        #[cfg(feature = "planted")]
        let is_fenced = is_fenced && !flare_model::planted::Bug::FencingRemoved.is_planted();
        if is_fenced {
            return Err(fenced(OPERATION, write.feed));
        }
        feed.incarnation = self.log.incarnation;
        feed.apply(write.record);
        Ok(())
    }
}

fn fenced(operation: &'static str, feed: FeedId) -> ProviderError {
    let detail = format!("feed {} of lane {}", feed.subscription, feed.lane);
    ProviderError::new(ErrorKind::Fenced, operation, detail)
}

#[async_trait]
impl Ledger for Engine {
    async fn open(&self, feeds: &[FeedId], epoch: u64) -> Result<Vec<Opened>> {
        self.durable("ledger.open")?.open(feeds, epoch)
    }

    async fn next_epoch(&self) -> Result<u64> {
        let mut durable = self.durable("ledger.next_epoch")?;
        durable.feeds.last_epoch += 1;
        Ok(durable.feeds.last_epoch)
    }

    async fn write(&self, writes: Vec<FeedWrite>) -> Result<Vec<Result<()>>> {
        let mut durable = self.durable("ledger.write")?;
        Ok(writes.into_iter().map(|write| durable.write(write)).collect())
    }

    async fn needs(&self, lane: LaneId, after: SubscriptionNumber, limit: usize) -> Result<Vec<FeedNeeds>> {
        let durable = self.durable("ledger.needs")?;
        Ok(durable.feeds_of(lane, after).map(FeedNeeds::of).take(limit).collect())
    }

    async fn owes(&self, lane: LaneId, after: SubscriptionNumber, limit: usize) -> Result<Vec<FeedOwes>> {
        let durable = self.durable("ledger.owes")?;
        Ok(durable.feeds_of(lane, after).filter_map(FeedOwes::of).take(limit).collect())
    }

    async fn summary(&self, subscription: SubscriptionNumber) -> Result<Vec<FeedSummary>> {
        let durable = self.durable("ledger.summary")?;
        let feeds = durable.feeds.of(subscription);
        let summary = |(lane, feed): (u8, &Feed)| {
            FeedSummary::of(durable.found(FeedId { subscription, lane }, feed), feed.epoch)
        };
        Ok(feeds.map(summary).collect())
    }

    async fn standings(&self, list: ListStandings) -> Result<(u64, Vec<(u8, Standing)>)> {
        let durable = self.durable("ledger.standings")?;
        let wanted = |standing: &Standing| match standing.state {
            State::GaveUp => list.dead,
            State::Waiting { .. } => !list.dead,
            State::Leased { .. } | State::Doubtful | State::Passed => false,
        };
        let mut found = Vec::new();
        for (lane, feed) in durable.feeds.of(list.subscription) {
            found.extend(feed.standings.values().filter(|s| wanted(s)).map(|s| (lane, s.clone())));
        }
        let total = found.len() as u64;
        let (offset, limit) = (list.offset.min(total) as usize, list.limit.min(total) as usize);
        Ok((total, found.into_iter().skip(offset).take(limit).collect()))
    }

    async fn standing(&self, feed: FeedId, ordinal: Ordinal) -> Result<Option<Standing>> {
        let durable = self.durable("ledger.standing")?;
        Ok(durable.feeds.by_id.get(&feed).and_then(|feed| feed.standings.get(&ordinal)).cloned())
    }

    async fn note(&self, feed: FeedId, ordinal: Ordinal) -> Result<Option<Note>> {
        let durable = self.durable("ledger.note")?;
        Ok(durable.feeds.by_id.get(&feed).and_then(|feed| feed.notes.get(&ordinal)).cloned())
    }

    async fn state(&self, feed: FeedId, life: u64, ordinal: Ordinal) -> Result<Option<Kept>> {
        let durable = self.durable("ledger.state")?;
        let found = durable.feeds.by_id.get(&feed).and_then(|feed| feed.kept.get(&ordinal));
        Ok(found.filter(|(of, _)| *of == life).map(|(_, state)| Kept::clone(state)))
    }
}
