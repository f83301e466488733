//! Which units there are: the catalog comes in, units with their lanes go out.

use std::collections::BTreeMap;
use std::sync::Arc;

use flare_model::cluster::life::Existing;
use flare_model::cluster::{Reason, UnitId, UnitKind};
use flare_model::ids::{SubscriptionId, SubscriptionNumber};

use crate::operations::App;
use crate::operations::consumers::unit as consumer_unit;
use crate::registry::Subscription;

/// How much of a unit keeping house is, compared with a shard of a subscription.
const HOUSE: f64 = 0.1;

/// The unit that keeps house.
pub(super) fn sweeper() -> UnitId {
    UnitId::new(UnitKind::Sweeper, "retention", "0")
}

/// The unit of a shard.
pub(super) fn unit(subscription: &SubscriptionId, shard: u32) -> UnitId {
    let kind = if subscription.is_producer() { UnitKind::Producer } else { UnitKind::Subscription };
    UnitId::new(kind, subscription.as_str(), shard.to_string())
}

/// The units of a subscription, by shard.
pub(super) fn units(subscription: &Subscription) -> impl Iterator<Item = UnitId> {
    (0..subscription.compiled.shards()).map(|shard| unit(subscription.id(), shard))
}

/// The lanes of a shard.
pub(super) fn lanes(subscription: &Subscription, shard: u32) -> Vec<u8> {
    let (lanes, shards) = (subscription.compiled.resource.view.lanes, subscription.compiled.shards());
    (0..lanes).filter(|lane| u32::from(*lane) % shards == shard).map(|lane| lane as u8).collect()
}

/// The subscription of a unit and its shard; nothing for other units.
pub(super) fn of_subscription(unit: &UnitId) -> Option<(SubscriptionId, u32)> {
    let shard = unit.part().parse().ok()?;
    let follows = matches!(unit.kind(), UnitKind::Subscription | UnitKind::Producer);
    follows.then(|| (SubscriptionId::new(unit.id()), shard))
}

impl App {
    /// All units there are.
    pub(super) fn all_units(&self) -> BTreeMap<UnitId, Existing> {
        let mut all = BTreeMap::new();
        for subscription in self.registry.all_subscriptions(0, usize::MAX).entries {
            let shards = subscription.compiled.shards();
            let origin = if shards > 1 { Reason::Shards } else { Reason::Created };
            for (shard, unit) in units(&subscription).enumerate() {
                // They go together: what is asked of a subscription is asked of one node.
                let with = (shard > 0).then(|| self::unit(subscription.id(), 0));
                let weight = if with.is_some() { 0.0 } else { f64::from(shards) };
                all.insert(unit, Existing { weight, origin, parts: shards, with });
            }
        }
        for consumer in self.registry.consumers() {
            let existing = Existing { weight: 1.0, origin: Reason::Created, parts: 1, with: None };
            all.insert(consumer_unit(consumer.id()), existing);
        }
        let house = Existing { weight: HOUSE, origin: Reason::Created, parts: 1, with: None };
        all.insert(sweeper(), house);
        all
    }

    /// Tells the cluster which units there are, if the node is in one.
    pub(in crate::operations) fn tell_units(&self) {
        if let Some(ringing) = &self.ringing {
            ringing.units_changed();
        }
    }

    /// The unit that a lane of a subscription belongs to.
    pub(super) fn unit_of(&self, number: SubscriptionNumber, lane: u8) -> Option<UnitId> {
        let subscription = self.registry.subscription_by_number(number)?;
        Some(unit(subscription.id(), u32::from(lane) % subscription.compiled.shards()))
    }

    /// A subscription that a unit is of, and its shard.
    pub(super) fn subscription_of(&self, unit: &UnitId) -> Option<(Arc<Subscription>, u32)> {
        let (id, shard) = of_subscription(unit)?;
        Some((self.registry.subscription_by_id(&id)?, shard))
    }
}
