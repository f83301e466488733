//! What other nodes write: changes of the catalog are applied as if they had been made here, and lanes that they wrote are
//! read on from where this node knows them. It is rung for; and whatever is not heard of is found by a look from time to time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flare_model::ids::{LaneId, ResourceId, Seq, SubscriptionId};
use flare_model::subscription::Stored;
use flare_model::time::Timestamp;
use flare_provider::{
    CatalogChange, Deletion, Entity, EntityKind, Heard, Listener, ProviderError, Ring, ScanLane,
};

use crate::journey::Standstill;
use crate::operations::{App, Done, FOLLOWING, Failure, resource, standstill};

/// So many changes of the catalog are applied at a time.
const CHANGES: usize = 200;

/// So much of a lane is read at once for all who read it here, so many times.
const ROWS: usize = 1000;
const BYTES: usize = 4 << 20;
const PAGES: usize = 16;

/// A doorbell that cannot be listened to is asked again after this.
const AGAIN: Duration = Duration::from_secs(1);

impl App {
    /// Reads the catalog as a member does: everything is known, and nothing is opened.
    pub(in crate::operations) async fn load_as_member(&self) -> Result<(), ProviderError> {
        let _catalog = self.catalog.lock().await;
        self.list_anew().await
    }

    /// Everything of the catalog, as it is now; the caller holds the catalog.
    async fn list_anew(&self) -> Result<(), ProviderError> {
        // Before anything is read: what comes meanwhile has a higher one.
        let version = self.store.catalog.version().await?;
        self.reload_access().await?;
        self.reload_resources().await?;
        let mut stored = BTreeSet::new();
        for kind in FOLLOWING {
            let mut after = 0;
            while let Some(batch) = self.next_subscriptions(kind, &mut after).await? {
                for subscription in batch {
                    stored.insert(subscription.id().clone());
                    self.registry.put_subscription(subscription);
                }
            }
        }
        for known in self.registry.all_subscriptions(0, usize::MAX).entries {
            if !stored.contains(known.id()) {
                self.forget_subscription(&known).await;
            } else {
                self.tell_threads(&known.id().clone(), None).await;
            }
        }
        if let Some(ringing) = &self.ringing {
            ringing.followed.store(version, Ordering::Release);
        }
        self.tell_units();
        Ok(())
    }

    /// Holds the catalog, as it is now: whoever changes something of it knows what others have changed.
    pub(in crate::operations) async fn hold_catalog(&self) -> Done<tokio::sync::MutexGuard<'_, ()>> {
        let catalog = self.catalog.lock().await;
        self.catch_up_with_catalog().await?;
        Ok(catalog)
    }

    /// Sees to it that this node knows the catalog as it is now.
    pub async fn follow_catalog(&self) -> Done<()> {
        let Some(ringing) = self.ringing.as_ref().filter(|_| self.member.is_some()) else { return Ok(()) };
        let arrived = ringing.follows_begun();
        let _catalog = self.catalog.lock().await;
        // However many ask at once, whoever did so before another's look began has its answer.
        if ringing.followed_since(arrived) {
            return Ok(());
        }
        self.catch_up_with_catalog().await
    }

    /// The same; the caller holds the catalog.
    pub(in crate::operations) async fn catch_up_with_catalog(&self) -> Done<()> {
        let Some(ringing) = &self.ringing else { return Ok(()) };
        let look = ringing.begin_follow();
        loop {
            let since = ringing.followed.load(Ordering::Acquire);
            let Some(page) = self.store.catalog.changes(since, CHANGES).await? else {
                self.list_anew().await?;
                ringing.end_follow(look);
                return Ok(());
            };
            let some = !page.changes.is_empty();
            for change in page.changes {
                match change {
                    CatalogChange::Put(entity) => self.apply(&entity).await?,
                    CatalogChange::Deleted(deletion) => self.forget_entity(&deletion).await,
                }
            }
            self.registry.caught_up(page.upto);
            ringing.followed.store(page.upto, Ordering::Release);
            if some {
                self.tell_units();
            }
            if !page.more {
                ringing.end_follow(look);
                return Ok(());
            }
        }
    }

    async fn apply(&self, entity: &Entity) -> Done<()> {
        match entity.kind {
            EntityKind::Resource => {
                let id = ResourceId::new(entity.id.as_str());
                if self.registry.resource(&id).is_none() {
                    self.registry.add_resource(Arc::new(resource(entity)?));
                }
            }
            EntityKind::Consumer => {
                self.apply_consumer(entity)?;
                self.consumers_changed();
            }
            EntityKind::Subscription | EntityKind::Producer => {
                let id = SubscriptionId::new(entity.id.as_str());
                let known = self.registry.subscription_by_id(&id);
                if known.as_ref().is_some_and(|known| known.version >= entity.version) {
                    return Ok(());
                }
                #[cfg(feature = "planted")]
                if known.is_some() && flare_model::planted::Bug::CatalogChangeMissed.is_planted() {
                    return Ok(());
                }
                match self.compile(entity) {
                    Ok(changed) => {
                        self.registry.put_subscription(changed);
                        let before =
                            known.map(|known| (standstill(&known.stored), stood_since(&known.stored)));
                        self.tell_threads(&id, before).await;
                    }
                    // Its resource is gone by now, and so is it: a later change says so.
                    Err(Failure::NotFound(_)) => {}
                    Err(failure) => {
                        tracing::error!(subscription.id = %id, error = %failure, "another node stored what cannot be read");
                    }
                }
            }
            EntityKind::Account | EntityKind::Token => self.apply_access(entity)?,
        }
        Ok(())
    }

    /// The threads that serve a subscription hear how it is by now.
    async fn tell_threads(&self, id: &SubscriptionId, before: Option<(Standstill, Option<Timestamp>)>) {
        let Some(changed) = self.registry.subscription_by_id(id) else { return };
        if !self.journey.serves(changed.number()) {
            return;
        }
        self.journey.replace(&changed.compiled).await;
        match before {
            Some((stood, _)) if stood == standstill(&changed.stored) => {}
            Some((_, since)) => self.stand(&changed, since).await,
            None => self.stand(&changed, None).await,
        }
    }

    async fn forget_entity(&self, deletion: &Deletion) {
        match deletion.kind {
            EntityKind::Resource | EntityKind::Consumer => {
                if let Some(gone) = self.registry.tracked(&ResourceId::new(deletion.id.as_str())) {
                    self.registry.remove_resource(gone.id());
                    gone.lanes().for_each(|lane| self.journey.forget(lane));
                    self.consumers_changed();
                }
            }
            EntityKind::Subscription | EntityKind::Producer => {
                let id = SubscriptionId::new(deletion.id.as_str());
                if let Some(gone) = self.registry.subscription_by_id(&id) {
                    self.forget_subscription(&gone).await;
                }
            }
            EntityKind::Account | EntityKind::Token => self.forget_access(deletion),
        }
    }

    /// Follows what other nodes write, until this one stops.
    pub(in crate::operations) async fn follow_others(self: Arc<App>) {
        let (Some(member), Some(ringing)) = (self.member.clone(), self.ringing.clone()) else {
            return std::future::pending().await;
        };
        member.units(self.all_units());
        let mut listener: Option<Box<dyn Listener>> = None;
        let mut listens_at = Duration::ZERO;
        let mut looks_at = Duration::ZERO;
        loop {
            let now = self.clock.monotonic();
            if listener.is_none()
                && now >= listens_at
                && let Some(doorbell) = &ringing.doorbell
            {
                listens_at = now + AGAIN;
                match doorbell.listen().await {
                    Ok(listens) => (listener, looks_at) = (Some(listens), now),
                    Err(error) => tracing::debug!(error = %error, "the doorbell cannot be heard"),
                }
            }
            // However much there is to hear, it is looked in time.
            if now >= looks_at {
                self.look_around().await;
                looks_at = self.clock.monotonic() + ringing.poll;
                #[cfg(feature = "planted")]
                if flare_model::planted::Bug::NoPoll.is_planted() {
                    looks_at += Duration::from_secs(1_000_000);
                }
            }
            let wait = looks_at.saturating_sub(self.clock.monotonic());
            tokio::select! {
                biased;
                () = ringing.wait_for_units() => member.units(self.all_units()),
                heard = next(&mut listener) => match heard {
                    Ok(Heard::Rings(rings)) => self.heard(rings).await,
                    Ok(Heard::Missed) => looks_at = Duration::ZERO,
                    Err(_) => listener = None,
                },
                gaps = member.tenancy.wait_for_gaps() => {
                    for (lane, head) in gaps {
                        self.follow_lane(lane, head).await;
                    }
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn heard(&self, rings: Vec<Ring>) {
        for ring in rings {
            match ring {
                Ring::Lane { lane, head } => self.follow_lane(lane, head).await,
                Ring::Catalog { version } => {
                    let known = self.ringing.as_ref().map(|ringing| ringing.followed.load(Ordering::Acquire));
                    if known.is_some_and(|known| known < version)
                        && let Err(failure) = self.follow_catalog().await
                    {
                        tracing::warn!(error = %failure, "the catalog could not be followed; it is tried again");
                    }
                }
            }
        }
    }

    /// Looks at everything that may have changed.
    async fn look_around(&self) {
        if let Err(failure) = self.follow_catalog().await {
            tracing::warn!(error = %failure, "the catalog could not be followed; it is tried again");
        }
        let Ok(lanes) = self.store.documents.lanes().await else { return };
        for state in lanes {
            self.follow_lane(state.lane, state.head).await;
        }
    }

    /// A lane stands at `head` at least: what is not known of it is read, if somebody reads it here.
    async fn follow_lane(&self, lane: LaneId, head: Seq) {
        for _ in 0..PAGES {
            let Some(known) = self.journey.head(lane).filter(|known| *known < head) else { return };
            let scan = ScanLane { lane, after: known, upto: Seq(u64::MAX), rows: ROWS, bytes: BYTES };
            // What cannot be read now is with the next look.
            let Ok(page) = self.store.documents.scan(scan).await else { return };
            self.journey.follow(lane, known, page.upto, page.documents);
        }
        // So much was written at once that whoever is behind reads for himself.
        self.journey.reach(lane, head);
    }
}

/// What is heard next; nothing for as long as nobody listens.
async fn next(listener: &mut Option<Box<dyn Listener>>) -> Result<Heard, ProviderError> {
    match listener {
        Some(listener) => listener.next().await,
        None => std::future::pending().await,
    }
}

fn stood_since(stored: &Stored) -> Option<Timestamp> {
    stored.disabled.as_ref().map(|disabled| disabled.since).or(stored.paused_since)
}
