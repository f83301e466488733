//! What can be done with Flare's entities, whoever asks: checked, stored, and made known to the journey.

mod app;
mod catalog;
mod chores;
mod delivery;
mod documents;
mod housekeeping;
mod watching;

use std::sync::Arc;

use flare_model::ids::{FeedId, ResourceId, ResourceNumber, SubscriptionId, SubscriptionNumber};
use flare_model::invalid::Invalid;
use flare_model::resource::{Resource, ResourceView};
use flare_model::subscription::{Stored, check, fitting, lowered};
use flare_provider::{Entity, EntityKind, ErrorKind, Opened, ProviderError};

pub use app::{App, Identity, Inboxes, Parts};
pub use catalog::changes::Changes;
pub use catalog::secrets::{Rotation, RotationDraft};
pub use catalog::subscriptions::{StatusView, SweepView};
pub use chores::{Chore, Chores, OnFailure, When};
pub use delivery::dead_letters::DeadLetterView;
pub use delivery::groups::{DeadLetterKind, DeadLetterKinds};
pub use delivery::leases::{EndedView, LeaseView};
pub use delivery::passive::{DeliverQuery, DeliverView, ReserveQuery, ReserveView, StreamQuery};
pub use delivery::replays::{ReplayDraft, ReplayView};
pub use delivery::settle::{SettleDraft, SettleView};
pub use delivery::trials::{TestDraft, TestView};
pub use documents::drift::{DriftPlace, DriftQuery, DriftView};
pub use documents::filters::{FilterTrial, FilterTrialView};
pub use documents::holders::{HolderView, HoldersQuery};
pub use documents::search::{FoundView, SearchPlace, SearchQuery};
pub use watching::overview::{OverviewView, Standing, SubscriptionQuery};
pub use watching::trouble::{Troubled, TroubledView};

use crate::journey::{Event, Standstill};
use crate::notification::compiled::Compiled;
use crate::registry::Subscription;

/// Why an operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// The request is wrong.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The state does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// As many wait as may; later there may be room.
    #[error("{0}")]
    TooMany(String),
    /// The node is going down.
    #[error("the node is stopping")]
    Stopping,
    /// The store says no.
    #[error(transparent)]
    Store(#[from] ProviderError),
}

/// The result of an operation.
pub type Done<T> = Result<T, Failure>;

/// So many subscriptions are taken over at a time: what is read of them is in memory twice for a moment, and with it the
/// feeds of all their lanes.
const BATCH: usize = 200;

impl App {
    /// Reads the whole catalog and takes all feeds over. Where the store takes no writes, [`App::load_to_read`] can be
    /// tried after it.
    pub async fn load(&self) -> Result<(), ProviderError> {
        self.journey.epoch().await?;
        self.reload_resources().await?;
        let mut after = 0;
        while let Some(batch) = self.next_subscriptions(&mut after).await? {
            self.take_over(batch, false).await?;
        }
        Ok(())
    }

    /// The next subscriptions of the catalog, as it has them.
    async fn next_subscriptions(
        &self,
        after: &mut u64,
    ) -> Result<Option<Vec<Arc<Subscription>>>, ProviderError> {
        let entities = self.store.catalog.list(EntityKind::Subscription, *after, BATCH).await?;
        let Some(last) = entities.last() else { return Ok(None) };
        *after = last.number;
        let mut batch = Vec::with_capacity(entities.len());
        for entity in entities {
            let subscription = self.compile(&entity).map_err(|failure| corrupt(&entity, &failure))?;
            self.warn_of_lowered(&subscription);
            if let Some(disabled) = &subscription.stored.disabled {
                self.trouble.report(subscription.id().clone(), disabled.since);
            }
            batch.push(subscription);
        }
        Ok(Some(batch))
    }

    /// Takes feeds over, under the epoch of this process.
    async fn open_feeds(&self, feeds: &[FeedId]) -> Result<Vec<Opened>, ProviderError> {
        self.store.ledger.open(feeds, self.journey.epoch().await?).await
    }

    /// A configuration that allows less than before keeps nobody from starting; what it changes is said once.
    fn warn_of_lowered(&self, subscription: &Subscription) {
        let lowered = lowered(&subscription.stored.draft, &self.limits);
        if !lowered.is_empty() {
            let lowered: Vec<String> = lowered.iter().map(ToString::to_string).collect();
            tracing::warn!(
                subscription.id = %subscription.id(), lowered = lowered.join(", "),
                "a subscription asks for more than the configuration allows, and gets less"
            );
        }
    }

    /// Opens the feeds of subscriptions and hands them to their threads.
    async fn take_over(
        &self,
        subscriptions: Vec<Arc<Subscription>>,
        fresh: bool,
    ) -> Result<(), ProviderError> {
        let feeds: Vec<FeedId> = subscriptions
            .iter()
            .flat_map(|subscription| {
                let (number, lanes) = (subscription.number(), subscription.compiled.resource.view.lanes);
                (0..lanes).map(move |lane| FeedId { subscription: number, lane: lane as u8 })
            })
            .collect();
        let opened = self.open_feeds(&feeds).await?;
        let mut opened = opened.into_iter().peekable();
        for subscription in subscriptions {
            let number = subscription.number();
            let mut mine = Vec::new();
            while let Some(feed) = opened.next_if(|feed| feed.feed.subscription == number) {
                mine.push(feed);
            }
            if mine.len() != usize::from(subscription.compiled.resource.view.lanes) {
                let detail = format!("subscription {} lacks feeds", subscription.id());
                return Err(ProviderError::new(ErrorKind::Corrupt, "ledger.open", detail));
            }
            let standstill = standstill(&subscription.stored);
            let compiled = subscription.compiled.clone();
            self.registry.put_subscription(subscription);
            self.journey.open(&compiled, mine, standstill, fresh).await;
        }
        Ok(())
    }

    fn compile(&self, entity: &Entity) -> Done<Arc<Subscription>> {
        let parent = ResourceId::new(entity.parent.as_deref().unwrap_or_default());
        let resource = self.registry.resource(&parent).ok_or_else(|| unknown_resource(&parent))?;
        let mut stored: Stored =
            serde_json::from_str(&entity.body).map_err(|e| Invalid::new("subscription", e))?;
        stored.secrets.shrink_to_fit();
        stored.replays.shrink_to_fit();
        let lowered = lowered(&stored.draft, &self.limits);
        let spec = check(&fitting(&stored.draft, &lowered), &resource, &self.limits)?;
        let id = SubscriptionId::new(entity.id.as_str());
        let number = SubscriptionNumber(entity.number);
        let incarnation = self.store.documents.incarnation();
        let signer = self.signer(&id, &stored).map_err(|e| Invalid::new("secret", e))?;
        let compiled =
            Compiled::new(id, number, stored.filter_changes, resource, spec, incarnation, &self.user_agent)
                .signed(signer);
        let compiled = Arc::new(compiled);
        Ok(Arc::new(Subscription { stored, version: entity.version, compiled }))
    }

    /// Tells the operator what delivery threads tell, until they are gone.
    async fn follow_events(self: Arc<App>, mut events: tokio::sync::mpsc::Receiver<Event>) {
        while let Some(event) = events.recv().await {
            match event {
                Event::Failing { id, since, at } => {
                    self.trouble.report(id.clone(), since);
                    self.tell_failing(id, since, at);
                }
                Event::Recovered { id, at } => {
                    self.trouble.doubt(id.clone());
                    self.tell_recovered(id, at);
                }
            }
        }
    }
}

fn standstill(stored: &Stored) -> Standstill {
    match (&stored.disabled, stored.paused_since) {
        (Some(_), _) => Standstill::Disabled,
        (None, Some(_)) => Standstill::Paused,
        (None, None) => Standstill::None,
    }
}

fn resource(entity: &Entity) -> Result<Resource, ProviderError> {
    let view: ResourceView = serde_json::from_str(&entity.body).map_err(|e| corrupt(entity, &e))?;
    Resource::compile(view, ResourceNumber(entity.number)).map_err(|e| corrupt(entity, &e))
}

fn corrupt(entity: &Entity, why: &dyn std::fmt::Display) -> ProviderError {
    let detail = format!("{} {} cannot be read: {why}", entity.kind.as_str(), entity.id);
    ProviderError::new(ErrorKind::Corrupt, "catalog.list", detail)
}

fn unknown_resource(id: &ResourceId) -> Failure {
    Failure::NotFound(format!("there is no resource {id}"))
}

fn unknown_subscription(id: &SubscriptionId) -> Failure {
    Failure::NotFound(format!("there is no subscription {id} of this resource"))
}
