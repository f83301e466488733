//! Who serves a subscription: this node, another, or nobody yet.

use std::time::Duration;

use flare_model::cluster::{NodeId, UnitId};
use flare_model::feed::SweepKind;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::units;
use crate::cluster::Seen;
use crate::journey::Progress;
use crate::operations::{App, Done, Failure, consumers};
use crate::registry::Subscription;

/// How long it is waited for somebody to serve a subscription.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// Who serves a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This node.
    Here,
    /// Another, which is reached so.
    There(NodeId, String),
    /// Nobody yet.
    Nobody,
}

/// A shard of a subscription, and who serves it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Shard")]
pub struct Shard {
    /// Which.
    pub shard: u32,
    /// The node that serves it; none while nobody does.
    pub node: Option<NodeId>,
    /// Under which epoch.
    pub epoch: Option<u64>,
    /// The lanes that it has of its resource.
    pub lanes: Vec<u8>,
}

impl App {
    /// Who serves a subscription, as far as is known at this moment.
    pub fn owner(&self, subscription: &Subscription) -> Owner {
        if self.member.is_none() || self.journey.serves_all(subscription.number()) {
            return Owner::Here;
        }
        let seen = self.seen();
        let first = units::unit(subscription.id(), 0);
        let Some((node, _)) = seen.owner(&first).filter(|(node, _)| *node != self.about.node) else {
            return Owner::Nobody;
        };
        let address = seen.snapshot.as_ref().and_then(|snapshot| snapshot.nodes.get(&node));
        address.map_or(Owner::Nobody, |found| Owner::There(node.clone(), found.record.address.clone()))
    }

    /// The same, once somebody does, or it was waited for long enough. `here`: only this node will do. `None`: there is
    /// no such subscription, for all that the store knows.
    pub async fn find_owner(
        &self,
        resource: Option<&ResourceId>,
        id: &SubscriptionId,
        here: bool,
    ) -> Option<Owner> {
        let find = || {
            let found = self.registry.subscription_by_id(id)?;
            let fits = resource.is_none_or(|resource| found.compiled.resource.id() == resource);
            fits.then_some(found)
        };
        if find().is_none() {
            // Another node may have created it just now. Where that cannot be asked, nobody can say that there is none.
            let asked = self.follow_catalog().await;
            if matches!(asked, Err(Failure::Store(error)) if error.is_passing()) {
                return Some(Owner::Nobody);
            }
        }
        let until = self.clock.monotonic() + PATIENCE;
        loop {
            let owner = self.owner(&*find()?);
            let will_do = match &owner {
                Owner::Here => true,
                Owner::There(..) => !here,
                Owner::Nobody => false,
            };
            if will_do || self.clock.monotonic() >= until || self.stop.is_cancelled() {
                return Some(if will_do { owner } else { Owner::Nobody });
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// How a subscription that another node serves stands, as that one recorded it last.
    pub(in crate::operations) async fn recorded(&self, subscription: &Subscription) -> Done<Progress> {
        let mut seen = Progress::default();
        for feed in self.store.ledger.summary(subscription.number()).await? {
            seen.cursor += feed.cursor.0;
            seen.head += feed.head.0;
            seen.waiting += feed.waiting;
            seen.dead_letters += feed.dead;
            seen.held += feed.held;
            seen.tally.add(&feed.tally);
            let behind = feed.head.0.saturating_sub(feed.cursor.0);
            seen.lagging.documents += feed.waiting + behind;
            seen.lagging.is_bound |= behind > 0;
            seen.sweep = seen.sweep.or(feed.sweep.map(|sweep| sweep.kind));
        }
        seen.preparing = seen.sweep == Some(SweepKind::Beginning);
        Ok(seen)
    }

    /// This node, if it served all of a subscription at that time.
    pub(in crate::operations) fn served_here_at(
        &self,
        subscription: &Subscription,
        at: Timestamp,
    ) -> Option<NodeId> {
        let opened = self.opened.lock();
        let here = |unit: &UnitId| opened.get(unit).is_some_and(|opened| opened.at <= at);
        let here = self.member.is_none() || units::units(subscription).all(|unit| here(&unit));
        here.then(|| self.about.node.clone())
    }

    /// Returns once a node is a member no more.
    pub async fn until_gone(&self, node: &NodeId) {
        let there = |seen: &Seen| seen.snapshot.as_ref().is_none_or(|known| known.nodes.contains_key(node));
        while there(&self.seen()) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// How another node is reached.
    pub fn address_of(&self, node: &NodeId) -> Option<String> {
        let seen = self.seen();
        let found = seen.snapshot.as_ref()?.nodes.get(node)?;
        Some(found.record.address.clone())
    }

    /// Who leads, and how it is reached; nobody, if this node does or nobody.
    pub fn leader_elsewhere(&self) -> Option<(NodeId, String)> {
        let seen = self.seen();
        let (leader, ..) = seen.snapshot.as_ref()?.leader.clone()?;
        let address = self.address_of(&leader)?;
        (leader != self.about.node).then_some((leader, address))
    }

    /// Who reads a consumer, and how it is reached; nobody, if this node does or nobody.
    pub fn reader_elsewhere(&self, id: &ResourceId) -> Option<(NodeId, String)> {
        self.member.as_ref()?;
        let (reader, _) = self.seen().owner(&consumers::unit(id))?;
        let address = self.address_of(&reader)?;
        (reader != self.about.node).then_some((reader, address))
    }

    /// All other members, and how they are reached.
    pub fn others(&self) -> Vec<(NodeId, String)> {
        let seen = self.seen();
        let all = seen.snapshot.iter().flat_map(|snapshot| snapshot.nodes.iter());
        let others = all.filter(|(id, _)| **id != self.about.node);
        others.map(|(id, found)| (id.clone(), found.record.address.clone())).collect()
    }

    /// The shards of a subscription, and who serves them.
    pub fn shards_of(&self, subscription: &Subscription) -> Vec<Shard> {
        let alone = self.member.is_none();
        let seen = (!alone).then(|| self.seen());
        let shards = 0..subscription.compiled.shards();
        let view = |shard| {
            let owner = match &seen {
                None => Some((self.about.node.clone(), self.journey.epoch_number())),
                Some(seen) => seen.owner(&units::unit(subscription.id(), shard)),
            };
            let (node, epoch) = owner.unzip();
            Shard { shard, node, epoch, lanes: units::lanes(subscription, shard) }
        };
        shards.map(view).collect()
    }
}
