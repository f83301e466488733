//! A node put together. In: its [`Parts`]. Out: an [`App`], on which every operation is a method, and the [`Inboxes`] that
//! its chores read.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use flare_model::cluster::{NodeId, UnitId};
use flare_model::ids::SubscriptionId;
use flare_model::subscription::Limits;
use flare_model::time::Timestamp;
use flare_provider::Store;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::bridges::Bridges;
use crate::cluster::Member;
use crate::config::{self, AuthMode, Config, Coordination, Entry};
use crate::door::{Clock, Entropy};
use crate::journey::{Event, Journey};
use crate::network::Destinations;
use crate::notification::compiled::Compiled;
use crate::observe::History;
use crate::observe::count::Traffic;
use crate::operations::catalog::changes::Changes;
use crate::operations::catalog::shards::Rearrangements;
use crate::operations::cluster::{Announced, Busy, House, Lines, Membership, Orders, Ringing, StoreSeen};
use crate::operations::consumers::Consuming;
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
    /// The node in its cluster, if it is in one.
    pub membership: Option<Membership>,
    /// The ways in and out that are not HTTP.
    pub bridges: Arc<Bridges>,
}

/// What a node says of itself.
pub struct Identity {
    /// Which Flare it is.
    pub version: Version,
    /// Where the API listens: as configured, or where that leaves it open the port that it got.
    pub address: SocketAddr,
    /// What the node is called among others.
    pub node: NodeId,
    /// How others reach it.
    pub advertised: String,
    /// What keeps everything, and where nodes find each other.
    pub engines: Engines,
    /// The effective configuration as it is shown: secrets redacted, each value with where it came from.
    pub settings: Vec<Entry>,
}

/// Which engines a node works with.
#[derive(Clone, Copy, Debug)]
pub struct Engines {
    /// What keeps everything.
    pub store: &'static str,
    /// Where nodes find each other.
    pub cluster: &'static str,
}

impl Identity {
    /// As configured, with the address that the API got.
    pub fn of(version: Version, address: SocketAddr, settings: Vec<Entry>, config: &Config) -> Identity {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = match host.trim() {
            "" => "flare",
            host => host,
        };
        let named = config.cluster.node.get().map(str::to_owned);
        let node = NodeId::new(named.unwrap_or_else(|| format!("{host}:{}", address.port())));
        let advertised = config.cluster.advertise.get().map(str::to_owned);
        let scheme = if config.http.server.tls.certificate.path().is_some() { "https" } else { "http" };
        let store = match config.provider.store {
            config::Store::Embedded => "embedded",
            config::Store::Memory => "memory",
            config::Store::Postgresql => "postgresql",
        };
        let cluster = match config.coordination() {
            Coordination::Alone => "none",
            Coordination::Postgresql => "postgresql",
            Coordination::Etcd => "etcd",
        };
        Identity {
            version,
            address,
            node,
            advertised: advertised.unwrap_or_else(|| format!("{scheme}://{address}")),
            engines: Engines { store, cluster },
            settings,
        }
    }
}

/// What comes in for the chores of a node. What is put into them is bounded where it is put.
pub struct Inboxes {
    /// What delivery threads tell.
    pub(super) events: mpsc::Receiver<Event>,
    /// What the operator is to be told.
    pub(super) notices: mpsc::Receiver<Notice>,
    /// Subscriptions whose number of shards has changed.
    pub(super) rearrangements: mpsc::Receiver<SubscriptionId>,
    /// What the cluster says, if the node is in one.
    pub(super) orders: Option<Orders>,
}

/// A unit that is served here, as it was when it was opened.
#[derive(Clone)]
pub(super) struct OpenedUnit {
    pub compiled: Arc<Compiled>,
    pub lanes: Vec<u8>,
    /// When that was.
    pub at: Timestamp,
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
    /// The node in its cluster, if it is in one.
    pub member: Option<Arc<Member>>,
    /// How other nodes are told that there is something to look at.
    pub(super) ringing: Option<Arc<Ringing>>,
    /// The epoch under which this node keeps house for all; 0 while another does.
    pub(super) house: House,
    /// The units that are served here. Bound: those units.
    pub(super) opened: Mutex<HashMap<UnitId, OpenedUnit>>,
    /// A node by itself was told to hand its units over.
    pub(super) draining: AtomicBool,
    /// How busy the node is.
    pub(super) busy: Busy,
    /// Since when the store does not answer.
    pub(super) store_seen: StoreSeen,
    /// How other nodes are spoken to.
    pub(super) lines: Lines,
    /// Cancelled when the node has left its cluster.
    pub(super) left: CancellationToken,
    /// What was asked over HTTP.
    pub(super) traffic: Arc<Traffic>,
    /// Who fails or is disabled.
    pub(super) trouble: Trouble,
    /// Which feeds are behind, and since when.
    pub(super) behind: Behind,
    /// Who is let in; `None`: whoever connects.
    pub access: Option<Access>,
    /// The version of the catalog up to which that follows it.
    pub(super) access_version: AtomicU64,
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
    /// Which log it is, as the store last said; 0 before it was asked.
    pub(super) incarnation: AtomicU64,
    /// The epoch under which is swept what nobody needs, once that has begun.
    pub(super) sweeper: tokio::sync::OnceCell<u64>,
    /// Since when a version of the catalog was there, up to which deletions are forgotten when that is long ago.
    pub(super) deletions: parking_lot::Mutex<Option<(std::time::Duration, u64)>>,
    /// Subscriptions wait to be taken over since the start, because the store takes no writes.
    pub(super) late: AtomicBool,
    /// Tests under way.
    pub(super) tests: tokio::sync::Semaphore,
    /// The ways in and out that are not HTTP.
    pub bridges: Arc<Bridges>,
    /// Consumers that are read here.
    pub(super) consuming: Consuming,
}

impl App {
    /// Puts the parts together. [`App::load`] comes next, and then [`App::chores`] with the inboxes.
    pub fn new(parts: Parts) -> (App, Inboxes) {
        let Parts { about, config, clock, mut store, journey, destinations, vault, telemetry, .. } = parts;
        let delivery = &config.delivery;
        let limits = Limits {
            default_timeout: delivery.default_timeout,
            maximum_timeout: delivery.maximum_timeout,
            default_concurrency: delivery.default_concurrency,
            maximum_concurrency: delivery.maximum_concurrency,
            maximum_ttl: config.domain.maximum_ttl,
        };
        let user_agent = config.http.client.user_agent.value().to_string();
        let (notices, noticed) = Notices::new();
        let (rearrangements, rearranged) = Rearrangements::new();
        let (mut member, mut ringing, mut orders) = (None, None, None);
        if let Some(joined) = parts.membership {
            let Membership { member: joined_as, driver, apart, orders: given, lost, doorbell, poll } = joined;
            let bell = Arc::new(Ringing::new(doorbell, poll));
            store.catalog = Arc::new(Announced::new(store.catalog, bell.clone()));
            orders = Some(Orders { driver, apart, orders: given, lost });
            (member, ringing) = (Some(joined_as), Some(bell));
        }
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
            member,
            ringing,
            house: House::default(),
            opened: Mutex::default(),
            draining: AtomicBool::new(false),
            busy: Busy::default(),
            store_seen: StoreSeen::default(),
            lines: Lines::default(),
            left: CancellationToken::new(),
            tracer: telemetry.as_ref().map(Telemetry::tracer),
            telemetry,
            traffic: parts.traffic,
            trouble: Trouble::default(),
            behind: Behind::default(),
            access: (config.auth.mode == AuthMode::Token).then(|| Access::new(&config.auth)),
            access_version: AtomicU64::new(0),
            vault,
            limits,
            user_agent,
            notices,
            rearrangements,
            catalog: tokio::sync::Mutex::default(),
            measured: tokio::sync::Mutex::default(),
            incarnation: AtomicU64::new(0),
            sweeper: tokio::sync::OnceCell::new(),
            deletions: parking_lot::Mutex::new(None),
            late: AtomicBool::new(false),
            tests: tokio::sync::Semaphore::new(delivery.tests),
            bridges: parts.bridges,
            consuming: Consuming::default(),
            config,
            clock,
        };
        let inboxes = Inboxes { events: parts.events, notices: noticed, rearrangements: rearranged, orders };
        (app, inboxes)
    }

    /// What makes spans, where telemetry is on.
    #[inline]
    pub fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.as_ref()
    }
}
