//! Memory follows the store. In: an entity about which they disagree, because an answer of the store was lost. Out: the
//! registry and the delivery threads have it as it is stored, or no longer.
//!
//! What the store says is so. Whoever finds a disagreement is answered as if somebody else had been there first, and the
//! next request finds both as one. All of this happens under the catalog's lock.

use std::collections::BTreeSet;
use std::sync::Arc;

use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::resource::Resource;
use flare_provider::{EntityKind, ErrorKind, ProviderError};

use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::operations::resource;
use crate::operations::standstill;
use crate::operations::unknown_subscription;
use crate::registry::Subscription;

impl App {
    /// Reads a subscription again; the caller holds the catalog. That it failed is only told: whoever comes next tries
    /// again.
    pub(in crate::operations) async fn reload_subscription(&self, id: &SubscriptionId) {
        tracing::warn!(subscription.id = %id, "a subscription is not in memory as it is stored; reading it again");
        if let Err(failure) = self.follow_subscription(id).await {
            tracing::warn!(subscription.id = %id, error = %failure, "the subscription could not be read again");
        }
    }

    async fn follow_subscription(&self, id: &SubscriptionId) -> Done<()> {
        let stored = self.store.catalog.get(kind_of(id), id.as_str()).await?;
        let known = self.registry.subscription_by_id(id);
        let (Some(stored), Some(known)) = (&stored, &known) else {
            return match (stored, known) {
                (Some(stored), _) => Ok(self.take_in(self.compile(&stored)?).await?),
                (None, Some(known)) => {
                    self.forget_subscription(&known).await;
                    Ok(())
                }
                (None, None) => Ok(()),
            };
        };
        let changed = self.compile(stored)?;
        self.registry.put_subscription(changed.clone());
        self.journey.replace(&changed.compiled).await;
        if standstill(&changed.stored) != standstill(&known.stored) {
            let stood_since = known.stored.disabled.as_ref().map(|d| d.since).or(known.stored.paused_since);
            self.stand(&changed, stood_since).await;
        }
        self.rearrange_if_needed(&changed).await;
        Ok(())
    }

    /// A subscription is gone from the store: first nobody finds it any more, then nobody serves it. In this order a
    /// rearrangement under way either sees that it is gone, or has handed it over before its threads are told.
    pub(in crate::operations) async fn forget_subscription(&self, subscription: &Subscription) {
        self.registry.remove_subscription(subscription.id());
        self.journey.remove(subscription.number()).await;
        self.journey.observe().forget(subscription.number());
        self.behind.forget_all(subscription.number());
        self.tell_units();
    }

    /// Reads a resource again that is stored and not known; the caller holds the catalog.
    pub(in crate::operations) async fn reload_resource(&self, id: &ResourceId) {
        tracing::warn!(resource.id = %id, "a resource is stored and not in memory; reading it again");
        match self.store.catalog.get(EntityKind::Resource, id.as_str()).await {
            Ok(None) => {}
            Ok(Some(entity)) => match resource(&entity) {
                Ok(resource) => self.registry.add_resource(Arc::new(resource)),
                Err(error) => tracing::error!(error = %error, "the resource cannot be read"),
            },
            Err(error) => tracing::warn!(error = %error, "the resource could not be read again"),
        }
    }

    /// Reads all resources again, where some came or went that the registry does not know of; the caller holds the
    /// catalog, or is the first to use it.
    pub(in crate::operations) async fn reload_resources(&self) -> Result<(), ProviderError> {
        const BATCH: usize = 200;
        // Before the list: what comes while that is read has a higher one.
        let version = self.store.catalog.version().await?;
        let (mut after, mut stored) = (0, BTreeSet::new());
        loop {
            let entities = self.store.catalog.list(EntityKind::Resource, after, BATCH).await?;
            let Some(last) = entities.last() else { break };
            after = last.number;
            for entity in &entities {
                stored.insert(entity.number);
                if self.registry.resource(&ResourceId::new(entity.id.as_str())).is_none() {
                    self.registry.add_resource(Arc::new(resource(entity)?));
                }
            }
        }
        self.reload_consumers(&mut stored).await?;
        for known in self.registry.all_tracked() {
            if !stored.contains(&known.number.0) {
                self.registry.remove_resource(known.id());
                known.lanes().for_each(|lane| self.journey.forget(lane));
            }
        }
        self.registry.caught_up(version);
        Ok(())
    }

    /// Reads the subscriptions of a resource again, or the producers of a consumer, that are stored and not known; the caller
    /// holds the catalog.
    pub(in crate::operations) async fn reload_subscriptions_of(&self, resource: &Resource) -> Done<()> {
        const BATCH: usize = 200;
        let mut after = 0;
        let kind = match resource.consumer() {
            None => EntityKind::Subscription,
            Some(_) => EntityKind::Producer,
        };
        loop {
            let stored = self.store.catalog.list(kind, after, BATCH).await?;
            let Some(last) = stored.last() else { return Ok(()) };
            after = last.number;
            for entity in
                stored.iter().filter(|entity| entity.parent.as_deref() == Some(resource.id().as_str()))
            {
                let id = SubscriptionId::new(entity.id.as_str());
                if self.registry.subscription_by_id(&id).is_none() {
                    self.reload_subscription(&id).await;
                }
            }
        }
    }

    /// Why a url cannot be had: the store says who has it for the same action.
    pub(in crate::operations) async fn same_url(&self, other: &str) -> Failure {
        let id = SubscriptionId::new(other);
        if self.registry.subscription_by_id(&id).is_none() {
            self.reload_subscription(&id).await;
        }
        Failure::Conflict(match id.is_producer() {
            true => format!(
                "producer {other} of this consumer has the same target; choose another, or change that one"
            ),
            false => format!(
                "subscription {other} of this resource has the same url for the same action; choose another url"
            ),
        })
    }

    /// A feed of a subscription gives no answer: whether it was deleted meanwhile, and so needs nothing.
    pub(in crate::operations) fn is_gone(&self, subscription: &Subscription) -> Done<bool> {
        match self.stop.is_cancelled() {
            true => Err(Failure::Stopping),
            false => Ok(self.registry.subscription_by_id(subscription.id()).is_none()),
        }
    }

    /// A delivery thread gives no answer about a subscription: the node stops, it was deleted meanwhile, or nobody serves
    /// it yet.
    pub(in crate::operations) fn left(&self, subscription: &Subscription) -> Failure {
        if self.stop.is_cancelled() {
            Failure::Stopping
        } else if self.awaits_the_start(subscription) {
            let detail = "the store takes no writes since the node began; deliveries begin when it does";
            Failure::Store(ProviderError::new(ErrorKind::Unavailable, "ledger.open", detail))
        } else if self.member.is_some() && self.registry.subscription_by_id(subscription.id()).is_some() {
            let id = subscription.id();
            let detail = format!("{} {id} is about to be served by another node", id.kind());
            Failure::Store(ProviderError::new(ErrorKind::Unavailable, "cluster.owner", detail))
        } else {
            unknown_subscription(subscription.id())
        }
    }
}

/// What has such an id.
fn kind_of(id: &SubscriptionId) -> EntityKind {
    if id.is_producer() { EntityKind::Producer } else { EntityKind::Subscription }
}

/// What was asked of each of several subscriptions, without those that were deleted meanwhile.
pub(in crate::operations) fn still_there<T>(answers: impl IntoIterator<Item = Done<T>>) -> Done<Vec<T>> {
    let gone = |answer: &Done<T>| matches!(answer, Err(Failure::NotFound(_)));
    answers.into_iter().filter(|answer| !gone(answer)).collect()
}
