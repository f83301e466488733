//! What the cluster says about units is done: opened under an epoch, drained, or cut. Of each unit one thing after the other,
//! except that a cut waits for nothing but what was being opened.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use flare_model::cluster::life::Event;
use flare_model::cluster::{UnitId, UnitKind};
use flare_model::ids::{FeedId, ResourceId};
use flare_provider::ErrorKind;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;

use super::units;
use crate::cluster::{Member, Order};
use crate::journey::Taken;
use crate::operations::app::OpenedUnit;
use crate::operations::{App, Done, Failure, standstill};

/// What is under way about a unit.
#[derive(Default)]
struct Work {
    /// So many things; a cut may come beside a drain.
    under_way: u32,
    /// It is being opened: whatever comes waits.
    opening: bool,
    /// It was told to stop, and says so once when nothing is under way any more.
    closes: bool,
    waiting: VecDeque<Order>,
}

/// What came of something.
enum Came {
    Opened(bool),
    Closed,
}

impl App {
    /// Does what the cluster says, until the node stops.
    pub(in crate::operations) async fn obey(self: Arc<App>, mut orders: mpsc::UnboundedReceiver<Order>) {
        // Bound of both: the units of this node, each with an opening, a drain and a cut at most.
        let mut works: BTreeMap<UnitId, Work> = BTreeMap::new();
        let mut under_way: FuturesUnordered<BoxFuture<'static, (UnitId, Came)>> = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some((unit, came)) = under_way.next() => {
                    let Some(work) = works.get_mut(&unit) else { continue };
                    work.under_way -= 1;
                    if let Came::Opened(opened) = came {
                        work.opening = false;
                        self.tell_cluster(if opened { Event::Opened(unit.clone()) } else { Event::NotOpened(unit.clone()) });
                    }
                    if work.under_way == 0 && std::mem::take(&mut work.closes) {
                        self.tell_cluster(Event::Closed(unit.clone()));
                    }
                }
                order = orders.recv() => {
                    let Some(order) = order else { return };
                    let unit = match &order { Order::Open(unit, _) | Order::Drain(unit) | Order::Cut(unit) => unit };
                    works.entry(unit.clone()).or_default().waiting.push_back(order);
                }
            }
            for (unit, work) in &mut works {
                while let Some(order) = work.next() {
                    under_way.push(self.clone().carry_out(unit.clone(), order));
                }
            }
            works.retain(|_, work| work.under_way > 0 || !work.waiting.is_empty());
        }
    }

    fn tell_cluster(&self, event: Event) {
        if let Some(member) = &self.member {
            member.tell(event);
        }
    }

    fn carry_out(self: Arc<App>, unit: UnitId, order: Order) -> BoxFuture<'static, (UnitId, Came)> {
        async move {
            let came = match order {
                Order::Open(_, epoch) => Came::Opened(self.open_unit(&unit, epoch).await),
                Order::Drain(_) => {
                    self.close_unit(&unit, false).await;
                    Came::Closed
                }
                Order::Cut(_) => {
                    self.close_unit(&unit, true).await;
                    Came::Closed
                }
            };
            (unit, came)
        }
        .boxed()
    }

    async fn open_unit(&self, unit: &UnitId, epoch: u64) -> bool {
        if *unit == units::sweeper() {
            return match self.store.documents.begin_sweeping(epoch).await {
                Ok(()) => {
                    self.house.begin(epoch);
                    self.note_served(unit, epoch);
                    true
                }
                Err(error) => {
                    tracing::warn!(error = %error, "keeping house could not be taken over");
                    false
                }
            };
        }
        if unit.kind() == UnitKind::Consumer {
            self.claim_consumer(&ResourceId::new(unit.id()), epoch);
            self.note_served(unit, epoch);
            return true;
        }
        match self.open_shard(unit, epoch).await {
            Ok(true) => {
                self.note_served(unit, epoch);
                true
            }
            Ok(false) => false,
            Err(failure) => {
                tracing::warn!(%unit, epoch, error = %failure, "unit could not be opened yet");
                false
            }
        }
    }

    /// This node serves a unit from now on.
    fn note_served(&self, unit: &UnitId, epoch: u64) {
        let assigned = |member: &Arc<Member>| Some(member.seen().snapshot.as_ref()?.assignment(unit)?.reason);
        let reason = self.member.as_ref().and_then(assigned);
        tracing::info!(%unit, epoch, ?reason, "unit is served here");
        if let (Some(member), Some(reason)) = (&self.member, reason) {
            member.counts_move(reason);
        }
    }

    /// Opens the lanes of a shard. False: not now, or there is no such shard any more.
    async fn open_shard(&self, unit: &UnitId, epoch: u64) -> Done<bool> {
        // Whoever had it before may have been told of a change that this node has not heard of yet.
        self.follow_catalog().await?;
        let Some((subscription, shard)) = self.subscription_of(unit) else { return Ok(false) };
        let shards = subscription.compiled.shards();
        if shard >= shards || !self.is_cut_alike(unit, shards).await? {
            return Ok(false);
        }
        let number = subscription.number();
        let lanes = units::lanes(&subscription, shard);
        let feeds: Vec<FeedId> =
            lanes.iter().map(|lane| FeedId { subscription: number, lane: *lane }).collect();
        let opened = match self.store.ledger.open(&feeds, epoch).await {
            Ok(opened) => opened,
            // Somebody took it over meanwhile: with another epoch it is tried again, if it is still this node's.
            Err(error) if error.kind == ErrorKind::Fenced => return Ok(false),
            Err(error) => return Err(Failure::Store(error)),
        };
        if opened.len() != feeds.len() {
            // The subscription is gone; the catalog will say so.
            return Ok(false);
        }
        // As it is by now: whoever changes it holds the catalog, and tells the threads that have it.
        let _catalog = self.catalog.lock().await;
        let Some(subscription) = self.registry.subscription_by_id(subscription.id()) else {
            return Ok(false);
        };
        if subscription.compiled.shards() != shards {
            return Ok(false);
        }
        let standstill = standstill(&subscription.stored);
        let served = OpenedUnit { compiled: subscription.compiled.clone(), lanes, at: self.clock.now() };
        self.opened.lock().insert(unit.clone(), served);
        let taken = Taken { opened, epoch, standstill, fresh: false };
        self.journey.open(&subscription.compiled, taken).await;
        Ok(true)
    }

    /// Whether nobody has a unit of a subscription by another number of shards, this node included: lanes would be opened here
    /// while they are served there. Everyone writes by how many shards he goes before he looks, so of two who differ one sees it at least.
    async fn is_cut_alike(&self, unit: &UnitId, shards: u32) -> Done<bool> {
        let Some(member) = &self.member else { return Ok(true) };
        let beside = member.claims_beside(unit).await.map_err(Failure::Store)?;
        let differs = beside.values().any(|claim| claim.parts != shards);
        if differs {
            self.follow_catalog().await?;
        }
        Ok(!differs)
    }

    async fn close_unit(&self, unit: &UnitId, at_once: bool) {
        if *unit == units::sweeper() {
            self.house.end();
            if !at_once {
                drop(self.house.turn.lock().await);
            }
            return;
        }
        if unit.kind() == UnitKind::Consumer {
            self.release_consumer(&ResourceId::new(unit.id()), at_once).await;
            tracing::info!(%unit, at_once, "unit is served here no more");
            return;
        }
        let Some(OpenedUnit { compiled, lanes, .. }) = self.opened.lock().get(unit).cloned() else { return };
        // As it is by now, unless it is gone.
        let known = self.registry.subscription_by_number(compiled.number);
        let compiled = known.map_or(compiled, |subscription| subscription.compiled.clone());
        if let (true, Some(member)) = (at_once, &self.member) {
            member.tenancy.cut_units.fetch_add(1, Ordering::Relaxed);
        }
        match at_once {
            true => self.journey.cut(&compiled, &lanes).await,
            false => self.journey.close(&compiled, &lanes).await,
        }
        self.opened.lock().remove(unit);
        tracing::info!(%unit, at_once, "unit is served here no more");
    }
}

impl Work {
    /// What may begin now.
    fn next(&mut self) -> Option<Order> {
        let may = match self.waiting.front()? {
            Order::Cut(_) => !self.opening,
            Order::Open(..) | Order::Drain(_) => self.under_way == 0,
        };
        let order = if may { self.waiting.pop_front()? } else { return None };
        self.under_way += 1;
        match &order {
            Order::Open(..) => self.opening = true,
            Order::Drain(_) | Order::Cut(_) => self.closes = true,
        }
        Some(order)
    }
}
