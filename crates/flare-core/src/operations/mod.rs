//! What can be done with Flare's entities, whoever asks: checked, stored, and made known to the journey.

mod access;
mod app;
mod catalog;
mod chores;
mod cluster;
mod consumers;
mod delivery;
mod documents;
mod housekeeping;
mod watching;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use flare_model::access::Account;
use flare_model::ids::{FeedId, ResourceId, ResourceNumber, SubscriptionId, SubscriptionNumber};
use flare_model::invalid::Invalid;
use flare_model::resource::{Resource, ResourceView};
use flare_model::subscription::credentials::REDACTED;
use flare_model::subscription::{Draft, Stored, check, fitting, lowered};
use flare_provider::{Entity, EntityKind, ErrorKind, Opened, ProviderError};

pub use access::accounts::AccountView;
pub use access::audit::{ActView, AuditQuery};
pub use access::tokens::{NewTokenView, TokenView};
pub use app::{App, Engines, Identity, Inboxes, Parts};
pub use catalog::changes::Changes;
pub use catalog::secrets::{Rotation, RotationDraft};
pub use catalog::subscriptions::{FeedView, StatusView, SweepView};
pub use chores::{Chore, Chores, OnFailure, When};
pub use cluster::{
    AssignmentQuery, AssignmentView, ClusterColour, ExplanationView, HealthQuery, HealthView, Membership,
    NodeStats, NodeView, Owner, RerouteDraft, RerouteView, Shard, StatsView,
};
pub use consumers::{
    ConsumerLetterView, ConsumerReplayDraft, ConsumerReplayView, ConsumerStatusView, ConsumerUnitView,
};
pub use delivery::dead_letters::DeadLetterView;
pub use delivery::groups::{DeadLetterKind, DeadLetterKinds};
pub use delivery::leases::{EndedView, LeaseView};
pub use delivery::passive::{DeliverQuery, DeliverView, ReserveQuery, ReserveView, StreamQuery};
pub use delivery::replays::{ReplayDraft, ReplayView};
pub use delivery::settle::{SettleDraft, SettleView};
pub use delivery::trials::{TestDraft, TestView};
pub use documents::drift::{DriftPlace, DriftQuery, DriftView};
pub use documents::filters::{FilterTrial, FilterTrialView, FilterView};
pub use documents::holders::{HolderView, HoldersQuery};
pub use documents::search::{FoundView, SearchPlace, SearchQuery};
pub use watching::overview::{OverviewView, Standing, SubscriptionQuery};
pub use watching::trouble::{Troubled, TroubledView};

use crate::journey::{Event, Standstill, Taken};
use crate::notification::compiled::{Appearance, Compiled};
use crate::registry::Subscription;
use crate::tls;

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
    /// Somebody else may, or the account has as much as it may have.
    #[error("{0}")]
    Forbidden(String),
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

/// The kinds of those who are told of documents.
const FOLLOWING: [EntityKind; 2] = [EntityKind::Subscription, EntityKind::Producer];

impl App {
    /// Reads the whole catalog and takes all feeds over; in a cluster only those that this node is given later. Where the
    /// store takes no writes, [`App::load_to_read`] can be tried after it.
    pub async fn load(&self) -> Result<(), ProviderError> {
        self.learn_incarnation().await?;
        self.journey.epoch().await?;
        if self.member.is_some() {
            return self.load_as_member().await;
        }
        self.reload_access().await?;
        self.reload_resources().await?;
        for kind in FOLLOWING {
            let mut after = 0;
            while let Some(batch) = self.next_subscriptions(kind, &mut after).await? {
                self.take_over(batch, false).await?;
            }
        }
        Ok(())
    }

    /// Asks which log this is: names of notifications carry it.
    async fn learn_incarnation(&self) -> Result<(), ProviderError> {
        self.incarnation.store(self.store.documents.incarnation().await?, Ordering::Release);
        Ok(())
    }

    /// The next subscriptions or producers of the catalog, as it has them.
    async fn next_subscriptions(
        &self,
        kind: EntityKind,
        after: &mut u64,
    ) -> Result<Option<Vec<Arc<Subscription>>>, ProviderError> {
        let entities = self.store.catalog.list(kind, *after, BATCH).await?;
        let Some(last) = entities.last() else { return Ok(None) };
        *after = last.number;
        let mut batch = Vec::with_capacity(entities.len());
        for entity in entities {
            let mut subscription = self.compile(&entity).map_err(|failure| corrupt(&entity, &failure))?;
            if let Some(sealed) = self.seal_if_open(entity, &subscription).await? {
                subscription = self.compile(&sealed).map_err(|failure| corrupt(&sealed, &failure))?;
            }
            self.warn_of_lowered(&subscription);
            if let Some(disabled) = &subscription.stored.disabled {
                self.trouble.report(subscription.id().clone(), disabled.since);
            }
            batch.push(subscription);
        }
        Ok(Some(batch))
    }

    /// Takes feeds over, under the epoch of this process.
    async fn open_feeds(&self, feeds: &[FeedId]) -> Result<(u64, Vec<Opened>), ProviderError> {
        let epoch = self.journey.epoch().await?;
        Ok((epoch, self.store.ledger.open(feeds, epoch).await?))
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

    /// A subscription is there, or is another one: this node serves it, or in a cluster whoever is given it.
    async fn take_in(&self, subscription: Arc<Subscription>) -> Result<(), ProviderError> {
        if self.member.is_none() {
            return self.take_over(vec![subscription], true).await;
        }
        self.registry.put_subscription(subscription);
        self.tell_units();
        Ok(())
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
        let (epoch, opened) = self.open_feeds(&feeds).await?;
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
            let taken = Taken { opened: mine, epoch, standstill, fresh };
            self.journey.open(&compiled, taken).await;
        }
        Ok(())
    }

    fn compile(&self, entity: &Entity) -> Done<Arc<Subscription>> {
        let parent = ResourceId::new(entity.parent.as_deref().unwrap_or_default());
        let resource = self.registry.tracked(&parent).ok_or_else(|| unknown_resource(&parent))?;
        let id = SubscriptionId::new(entity.id.as_str());
        let mut stored = self.known(&id, &entity.body)?;
        stored.secrets.shrink_to_fit();
        stored.replays.shrink_to_fit();
        let lowered = lowered(&stored.draft, &self.limits);
        let spec = check(&fitting(&stored.draft, &lowered), &resource, &self.limits)?;
        let number = SubscriptionNumber(entity.number);
        let incarnation = self.incarnation.load(Ordering::Acquire);
        let identity = identity_of(&stored.draft)?;
        let appearance = Appearance { user_agent: &self.user_agent, identity, bridges: &self.bridges };
        let signer = self.signer(&id, &stored).map_err(|e| Invalid::new("secret", e))?;
        let compiled =
            Compiled::new(id, number, stored.filter_changes, resource, spec, incarnation, appearance)
                .counting_from(self.store.documents.sequences_from())
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

/// The certificate that a subscription shows to its client. One whose key is lost is not used, and not compiled.
fn identity_of(draft: &Draft) -> Result<Option<Arc<tls::Identity>>, Invalid> {
    let own = draft.endpoint.tls.as_ref().filter(|tls| tls.key != REDACTED);
    own.map(|own| tls::Identity::parse(&own.certificate, &own.key).map(Arc::new)).transpose()
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
    let compiled = Resource::compile(view, ResourceNumber(entity.number)).map_err(|e| corrupt(entity, &e))?;
    Ok(compiled.of(Account::of_parent(entity.parent.as_deref())))
}

fn corrupt(entity: &Entity, why: &dyn std::fmt::Display) -> ProviderError {
    let detail = format!("{} {} cannot be read: {why}", entity.kind.as_str(), entity.id);
    ProviderError::new(ErrorKind::Corrupt, "catalog.list", detail)
}

fn unknown_resource(id: &ResourceId) -> Failure {
    Failure::NotFound(match id.as_str().starts_with(ResourceId::CONSUMER) {
        true => format!("there is no consumer {id}"),
        false => format!("there is no resource {id}"),
    })
}

fn unknown_subscription(id: &SubscriptionId) -> Failure {
    Failure::NotFound(match id.is_producer() {
        true => format!("there is no producer {id} of this consumer"),
        false => format!("there is no subscription {id} of this resource"),
    })
}
