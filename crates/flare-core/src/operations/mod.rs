//! What can be done with Flare's entities, whoever asks: checked, stored, and made known to the journey.

mod catalog;
mod delivery;
mod documents;
mod housekeeping;
mod watching;

use std::net::SocketAddr;
use std::sync::Arc;

use flare_model::ids::{FeedId, ResourceId, ResourceNumber, SubscriptionId, SubscriptionNumber};
use flare_model::invalid::Invalid;
use flare_model::resource::{Resource, ResourceView};
use flare_model::subscription::{Limits, Stored, check, fitting, lowered};
use flare_model::time::Timestamp;
use flare_provider::{Entity, EntityKind, ErrorKind, ProviderError, Store};
use http::HeaderValue;
use tokio_util::sync::CancellationToken;

pub use catalog::changes::Changes;
pub use catalog::secrets::{Rotation, RotationDraft};
pub use catalog::shards::Rearrangements;
pub use catalog::subscriptions::{StatusView, SweepView};
pub use delivery::dead_letters::DeadLetterView;
pub use delivery::passive::{
    DeliverQuery, DeliverView, ReserveQuery, ReserveView, SettleDraft, SettleView, StreamQuery,
};
pub use delivery::replays::{ReplayDraft, ReplayView};
pub use delivery::trials::{TestDraft, TestView};
pub use documents::drift::{DriftQuery, DriftView, Place};
pub use documents::filters::{Trial, TrialView};
pub use documents::holders::{HolderView, HoldersQuery};
pub use documents::search::{FoundView, SearchQuery};
use housekeeping::behind::Behind;
pub use housekeeping::notices::Notices;
pub use watching::overview::{OverviewView, Standing, SubscriptionQuery};
use watching::trouble::Trouble;

use crate::config::{Config, Entry};
use crate::door::Clock;
use crate::journey::{Event, Journey, Standstill};
use crate::network::Destinations;
use crate::notification::compiled::Compiled;
use crate::observe::History;
use crate::observe::count::Traffic;
use crate::registry::{Registry, Subscription};
use crate::steps::Steps;
use crate::telemetry::{Telemetry, Tracer};
use crate::vault::Vault;
use crate::version::Version;

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

/// Everything an operation needs.
pub struct App {
    /// The configuration.
    pub config: Config,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// How the wall clock was set meanwhile.
    pub steps: Steps,
    /// Where everything is.
    pub store: Store,
    /// The catalog in memory.
    pub registry: Registry,
    /// The running journey.
    pub journey: Journey,
    /// Which addresses clients may have.
    pub destinations: Destinations,
    /// What happened lately, for plots.
    pub history: History,
    /// Where the API listens: as configured, or where that leaves it open the port that it got.
    pub address: SocketAddr,
    /// What was asked over HTTP.
    traffic: Arc<Traffic>,
    /// When the process began.
    pub started_at: Timestamp,
    /// Cancelled when the node stops.
    pub stop: CancellationToken,
    /// The owner of what changes something.
    pub changes: Changes,
    /// The effective configuration as it is shown: secrets redacted, each value with where it came from.
    pub settings: Vec<Entry>,
    /// Which Flare this is.
    pub version: Version,
    /// Who fails or is disabled.
    trouble: Trouble,
    /// Traces and metrics for a collector, where one is configured.
    pub telemetry: Option<Telemetry>,
    /// The part of it that every request asks for.
    tracer: Option<Arc<Tracer>>,
    /// Which feeds are behind, and since when.
    behind: Behind,
    /// What seals secrets.
    vault: Vault,
    limits: Limits,
    user_agent: HeaderValue,
    notices: Notices,
    rearrangements: Rearrangements,
    /// Changes of the catalog happen one after the other, so that memory and store agree.
    catalog: tokio::sync::Mutex<()>,
    /// What metrics say of the store and the process, for a few seconds.
    measured: tokio::sync::Mutex<watching::metrics::Measured>,
    /// Tests under way.
    tests: tokio::sync::Semaphore,
}

impl App {
    /// Puts the parts together; [`App::load`] comes next.
    #[expect(clippy::too_many_arguments, reason = "the parts of a node, put together in one place")]
    pub fn new(
        version: Version,
        config: Config,
        clock: Arc<dyn Clock>,
        store: Store,
        journey: Journey,
        destinations: Destinations,
        notices: Notices,
        rearrangements: Rearrangements,
        vault: Vault,
        telemetry: Option<Telemetry>,
    ) -> App {
        let delivery = &config.delivery;
        let limits = Limits {
            default_timeout: delivery.default_timeout,
            maximum_timeout: delivery.maximum_timeout,
            default_concurrency: delivery.default_concurrency,
            maximum_concurrency: delivery.maximum_concurrency,
        };
        let user_agent = HeaderValue::from_str(&config.http.client.user_agent.value())
            .expect("the configuration checked the user agent");
        let started_at = clock.now();
        let steps = Steps::new(&*clock);
        let history = History::new(clock.clone(), config.history.sizes());
        let tests = tokio::sync::Semaphore::new(delivery.tests);
        let changes = Changes::new(config.http.server.max_connections);
        App {
            version,
            address: config.http.server.addr,
            settings: Vec::new(),
            trouble: Trouble::default(),
            config,
            clock,
            steps,
            store,
            registry: Registry::default(),
            journey,
            destinations,
            history,
            traffic: Arc::default(),
            started_at,
            stop: CancellationToken::new(),
            changes,
            tracer: telemetry.as_ref().map(Telemetry::tracer),
            telemetry,
            behind: Behind::default(),
            vault,
            limits,
            user_agent,
            notices,
            rearrangements,
            catalog: tokio::sync::Mutex::default(),
            measured: tokio::sync::Mutex::default(),
            tests,
        }
    }

    /// With what the page of settings shows.
    pub fn showing(self, settings: Vec<Entry>) -> App {
        App { settings, ..self }
    }

    /// At the address that it really has.
    pub fn listening_on(self, address: SocketAddr) -> App {
        App { address, ..self }
    }

    /// With what is counted of HTTP.
    pub fn counting(self, traffic: Arc<Traffic>) -> App {
        App { traffic, ..self }
    }

    /// What makes spans, where telemetry is on.
    #[inline]
    pub fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.as_ref()
    }

    /// Reads the whole catalog and takes all feeds over.
    pub async fn load(&self) -> Result<(), ProviderError> {
        // What is read of a batch is in memory twice for a moment, and with it the feeds of all its lanes.
        const BATCH: usize = 200;
        self.reload_resources().await?;
        let mut after = 0;
        loop {
            let entities = self.store.catalog.list(EntityKind::Subscription, after, BATCH).await?;
            let Some(last) = entities.last() else { break };
            after = last.number;
            let mut batch = Vec::with_capacity(entities.len());
            for entity in entities {
                let subscription = self.compile(&entity).map_err(|failure| corrupt(&entity, &failure))?;
                self.warn_of_lowered(&subscription);
                if let Some(disabled) = &subscription.stored.disabled {
                    self.trouble.report(subscription.id().clone(), disabled.since);
                }
                batch.push(subscription);
            }
            self.take_over(batch, false).await?;
        }
        Ok(())
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
        let opened = self.store.ledger.open(&feeds, self.journey.epoch()).await?;
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
    pub async fn follow_events(&self, mut events: tokio::sync::mpsc::Receiver<Event>) {
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
