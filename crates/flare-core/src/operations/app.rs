//! A node put together. In: its [`Parts`]. Out: an [`App`], on which every operation is a method, and the [`Inboxes`] that
//! its chores read.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flare_model::ids::SubscriptionId;
use flare_model::subscription::Limits;
use flare_model::time::Timestamp;
use flare_provider::Store;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Entry};
use crate::door::{Clock, Entropy};
use crate::journey::{Event, Journey};
use crate::network::Destinations;
use crate::observe::History;
use crate::observe::count::Traffic;
use crate::operations::catalog::changes::Changes;
use crate::operations::catalog::shards::Rearrangements;
use crate::operations::housekeeping::behind::Behind;
use crate::operations::housekeeping::notices::{Notice, Notices};
use crate::operations::watching::metrics::Measured;
use crate::operations::watching::trouble::Trouble;
use crate::registry::Registry;
use crate::steps::Steps;
use crate::telemetry::{Telemetry, Tracer};
use crate::vault::Vault;
use crate::version::Version;

/// What a node is put together from.
pub struct Parts {
    /// What it says of itself.
    pub about: Identity,
    /// The configuration.
    pub config: Config,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What ids and secrets are drawn from.
    pub entropy: Entropy,
    /// Where everything is.
    pub store: Store,
    /// The running journey, over the same store.
    pub journey: Journey,
    /// What its delivery threads tell.
    pub events: mpsc::Receiver<Event>,
    /// Which addresses clients may have.
    pub destinations: Destinations,
    /// What seals secrets.
    pub vault: Vault,
    /// Traces and metrics for a collector, where one is configured.
    pub telemetry: Option<Telemetry>,
    /// The owner of what changes something.
    pub changes: Changes,
    /// What is asked over HTTP.
    pub traffic: Arc<Traffic>,
}

/// What a node says of itself.
pub struct Identity {
    /// Which Flare it is.
    pub version: Version,
    /// Where the API listens: as configured, or where that leaves it open the port that it got.
    pub address: SocketAddr,
    /// The effective configuration as it is shown: secrets redacted, each value with where it came from.
    pub settings: Vec<Entry>,
}

/// What comes in for the chores of a node. What is put into them is bounded where it is put.
pub struct Inboxes {
    /// What delivery threads tell.
    pub(super) events: mpsc::Receiver<Event>,
    /// What the operator is to be told.
    pub(super) notices: mpsc::Receiver<Notice>,
    /// Subscriptions whose number of shards has changed.
    pub(super) rearrangements: mpsc::Receiver<SubscriptionId>,
}

/// Everything an operation needs.
pub struct App {
    /// What it says of itself.
    pub about: Identity,
    /// The configuration.
    pub config: Config,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What ids and secrets are drawn from.
    pub entropy: Entropy,
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
    /// When the process began.
    pub started_at: Timestamp,
    /// Cancelled when the node stops.
    pub stop: CancellationToken,
    /// The owner of what changes something.
    pub changes: Changes,
    /// Traces and metrics for a collector, where one is configured.
    pub telemetry: Option<Telemetry>,
    /// The part of it that every request asks for.
    tracer: Option<Arc<Tracer>>,
    /// What was asked over HTTP.
    pub(super) traffic: Arc<Traffic>,
    /// Who fails or is disabled.
    pub(super) trouble: Trouble,
    /// Which feeds are behind, and since when.
    pub(super) behind: Behind,
    /// What seals secrets.
    pub(super) vault: Vault,
    /// What subscriptions may ask for.
    pub(super) limits: Limits,
    pub(super) user_agent: String,
    pub(super) notices: Notices,
    pub(super) rearrangements: Rearrangements,
    /// Changes of the catalog happen one after the other, so that memory and store agree.
    pub(super) catalog: tokio::sync::Mutex<()>,
    /// What metrics say of the store and the process, for a few seconds.
    pub(super) measured: tokio::sync::Mutex<Measured>,
    /// Subscriptions wait to be taken over since the start, because the store takes no writes.
    pub(super) late: AtomicBool,
    /// Tests under way.
    pub(super) tests: tokio::sync::Semaphore,
}

impl App {
    /// Puts the parts together. [`App::load`] comes next, and then [`App::chores`] with the inboxes.
    pub fn new(parts: Parts) -> (App, Inboxes) {
        let Parts { about, config, clock, store, journey, destinations, vault, telemetry, .. } = parts;
        let delivery = &config.delivery;
        let limits = Limits {
            default_timeout: delivery.default_timeout,
            maximum_timeout: delivery.maximum_timeout,
            default_concurrency: delivery.default_concurrency,
            maximum_concurrency: delivery.maximum_concurrency,
        };
        let user_agent = config.http.client.user_agent.value().to_string();
        let (notices, noticed) = Notices::new();
        let (rearrangements, rearranged) = Rearrangements::new();
        let app = App {
            about,
            steps: Steps::new(&*clock),
            store,
            registry: Registry::default(),
            journey,
            destinations,
            history: History::new(clock.clone(), config.history.sizes()),
            started_at: clock.now(),
            stop: CancellationToken::new(),
            entropy: parts.entropy,
            changes: parts.changes,
            tracer: telemetry.as_ref().map(Telemetry::tracer),
            telemetry,
            traffic: parts.traffic,
            trouble: Trouble::default(),
            behind: Behind::default(),
            vault,
            limits,
            user_agent,
            notices,
            rearrangements,
            catalog: tokio::sync::Mutex::default(),
            measured: tokio::sync::Mutex::default(),
            late: AtomicBool::new(false),
            tests: tokio::sync::Semaphore::new(delivery.tests),
            config,
            clock,
        };
        let inboxes = Inboxes { events: parts.events, notices: noticed, rearrangements: rearranged };
        (app, inboxes)
    }

    /// What makes spans, where telemetry is on.
    #[inline]
    pub fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.as_ref()
    }
}
