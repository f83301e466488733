//! The only wiring: configuration in, a running node out, and its end.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use flare_core::config::{self, Config, Loaded};
use flare_core::door::{Clock, SystemClock};
use flare_core::journey::passive::PassiveLimits;
use flare_core::journey::{BreakerSettings, Dialler, Journey, Plan, ReadLimits, Report, WorkerLimits};
use flare_core::network::Destinations;
use flare_core::observe;
use flare_core::operations::{App, Notices, Rearrangements};
use flare_core::telemetry::Telemetry;
use flare_core::tls;
use flare_core::vault::Vault;
use flare_embedded::Embedded;
use flare_http::Site;
use flare_provider::memory::Memory;
use flare_provider::{ProviderError, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ui::{self, live::Live};
use crate::version;

/// An opened engine.
enum Engine {
    Embedded(Embedded),
    Memory(Memory),
}

impl Engine {
    fn open(config: &Config, report: &FatalReport) -> Result<Engine, ProviderError> {
        match config.provider.store {
            config::Store::Memory => Ok(Engine::Memory(Memory::new())),
            config::Store::Embedded => {
                let report = report.clone();
                let options = embedded_options(config, Arc::new(move |error| report.fatal(error)));
                Embedded::open(options).map(Engine::Embedded)
            }
        }
    }

    fn store(&self) -> Store {
        match self {
            Engine::Embedded(embedded) => embedded.store(),
            Engine::Memory(memory) => memory.store(),
        }
    }

    fn close(&self) {
        if let Engine::Embedded(embedded) = self {
            embedded.close();
        }
    }
}

/// The embedded engine's options, as configured.
pub fn embedded_options(
    config: &Config,
    fatal: Arc<dyn Fn(ProviderError) + Send + Sync>,
) -> flare_embedded::Options {
    let embedded = &config.provider.embedded;
    flare_embedded::Options {
        path: embedded.path.clone(),
        cache_bytes: embedded.cache.as_usize(),
        queue_bytes: embedded.queue_bytes.as_usize(),
        commit_bytes: embedded.commit_bytes.as_usize(),
        checkpoint_bytes: embedded.checkpoint_bytes.as_usize(),
        fatal,
        ..flare_embedded::Options::new(&embedded.path)
    }
}

/// Where the engine's thread says that it cannot go on. It exists before the journey does.
type FatalReport = Report;

/// What goes along with a node that is run inside something larger.
pub struct Company {
    /// Where the API listens, if that is open already; otherwise it is opened as configured.
    pub listener: Option<std::net::TcpListener>,
    /// Called once the API answers, with its address and with what is cancelled when the node begins to stop.
    pub ready: Box<dyn FnOnce(SocketAddr, CancellationToken)>,
    /// Cancelled to stop the node, as a signal would.
    pub end: CancellationToken,
    /// Called before a second signal ends the process at once.
    pub abrupt: Box<dyn Fn()>,
}

impl Company {
    /// A node by itself.
    pub fn none() -> Company {
        let (ready, abrupt) = (Box::new(|_, _| {}), Box::new(|| {}));
        Company { listener: None, ready, end: CancellationToken::new(), abrupt }
    }
}

/// Runs a node until it is told to stop.
pub fn run(loaded: Loaded, company: Company) -> anyhow::Result<()> {
    let config = &loaded.config;
    if config.debug.profiling {
        note_who_takes_memory();
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = config.http.server.thread_count(cores);
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(threads).thread_name("flare-api").enable_all().build()?;
    runtime.block_on(serve(loaded, cores, company))
}

/// Before anything is opened: a heap profile has what was taken since.
fn note_who_takes_memory() {
    #[cfg(feature = "heap-profile")]
    if let Err(error) = flare_http::profile::heap::begin() {
        // Whoever asks for such a profile is told as well; everything else works.
        tracing::warn!(error = &error as &dyn std::error::Error, "there will be no heap profiles");
    }
}

async fn serve(loaded: Loaded, cores: usize, company: Company) -> anyhow::Result<()> {
    let settings = loaded.entries();
    let config = loaded.config;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::of_process());
    let (report, mut fatal, events) = Report::new();
    // The address first: a second Flare on the same port should not touch the data.
    let addr = config.http.server.addr;
    let listener = match company.listener {
        Some(open) => {
            open.set_nonblocking(true)?;
            TcpListener::from_std(open)?
        }
        None => TcpListener::bind(addr)
            .await
            .with_context(|| format!("listening on {addr} (http.server.addr or --addr says where)"))?,
    };
    let addr = listener.local_addr()?;
    let engine = Engine::open(&config, &report).context("opening the store")?;
    // After the engine: the folder of the data is ours by then.
    let vault = Vault::open(&config).context("opening the key that seals secrets")?;
    let destinations = Destinations::new(&config.network, config.http.server.is_loopback());
    let telemetry = Telemetry::start(&config.telemetry, &clock).context("starting telemetry")?;
    let mut plan = plan(&config, cores, engine.store(), clock.clone(), &destinations, report)?;
    plan.tracer = telemetry.as_ref().map(Telemetry::tracer);
    let journey = Journey::start(plan).await.context("starting delivery")?;
    let (notices, noticed) = Notices::new();
    let (rearrangements, rearranged) = Rearrangements::new();
    let store = engine.store();
    let app = App::new(
        version::THIS,
        config,
        clock,
        store,
        journey,
        destinations,
        notices,
        rearrangements,
        vault,
        telemetry,
    );
    let live = Arc::new(Live::new(app.config.ui.listeners));
    let pages = if app.config.ui.enabled { ui::routes(live.clone()) } else { Site::default() };
    let (routes, patterns) = flare_http::site(pages, &app.changes).into_parts();
    let watch = Arc::new(flare_http::Watch::new(patterns, app.clock.clone()));
    let app = app.showing(settings);
    let app = Arc::new(app.listening_on(addr).counting(watch.traffic.clone()));
    app.load().await.context("reading the catalog")?;
    let (resources, subscriptions) = app.registry.counts();
    tracing::info!(
        version = version::VERSION,
        sha = version::SHA,
        address = %addr,
        resources,
        subscriptions,
        "Flare is ready"
    );

    // Whoever waits for something to come is answered at once when the node stops.
    let stop = app.stop.clone();
    (company.ready)(addr, stop.clone());
    let mut chores = JoinSet::new();
    chores.spawn({
        let app = app.clone();
        async move { app.follow_events(events).await }
    });
    chores.spawn({
        let app = app.clone();
        async move { app.carry_out_decisions().await }
    });
    chores.spawn({
        let app = app.clone();
        async move { app.post_notices(noticed).await }
    });
    chores.spawn({
        let app = app.clone();
        async move { app.rearrange(rearranged).await }
    });
    chores.spawn({
        let app = app.clone();
        async move { app.keep_house().await }
    });
    chores.spawn({
        let app = app.clone();
        async move { app.watch_clock().await }
    });
    chores.spawn({
        let (app, live) = (app.clone(), live.clone());
        async move { ui::live::run(&app, &live).await }
    });
    chores.spawn({
        let app = app.clone();
        async move { app.sample().await }
    });
    chores.spawn({
        let app = app.clone();
        async move { app.export_metrics().await }
    });
    let routes = routes.with_state(app.clone());
    let server = flare_http::server::serve(listener, routes, watch, &app.config.http.server, stop.clone());
    let mut server = std::pin::pin!(server);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let told_to_stop = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = company.end.cancelled() => {}
        }
    };
    tokio::select! {
        () = &mut server => {}
        () = told_to_stop => {}
        reason = reason(&mut fatal) => return Err(anyhow::anyhow!(reason)),
        // Both go on for as long as the node does.
        ended = chores.join_next() => anyhow::bail!("a task of the node ended: {ended:?}"),
    }
    tracing::info!("stopping: finishing what is in flight; a second signal stops at once");
    stop.cancel();
    app.journey.observe().close();
    let finish = async {
        // After the grace only what is being handled goes on, and a store that hangs must not hold up the end for ever.
        let patience = app.config.http.server.grace + app.config.http.server.timeout;
        if tokio::time::timeout(patience, server).await.is_err() {
            tracing::warn!("some API connections did not end in time");
        }
        // Those whose clients have left too: they tell the delivery threads what they have stored.
        if tokio::time::timeout(patience, app.changes.done()).await.is_err() {
            tracing::warn!("some changes were not done in time; what they stored is found at the next start");
        }
        app.journey.stop().await;
        chores.abort_all();
        app.end_telemetry().await;
    };
    tokio::select! {
        () = finish => {}
        _ = interrupt.recv() => at_once(&*company.abrupt, 130),
        _ = terminate.recv() => at_once(&*company.abrupt, 143),
        reason = reason(&mut fatal) => return Err(anyhow::anyhow!(reason)),
    }
    engine.close();
    tracing::info!("stopped");
    Ok(())
}

fn at_once(abrupt: &dyn Fn(), code: i32) -> ! {
    abrupt();
    std::process::exit(code)
}

async fn reason(fatal: &mut tokio::sync::watch::Receiver<Option<String>>) -> String {
    match fatal.wait_for(Option::is_some).await {
        Ok(reason) => reason.clone().unwrap_or_default(),
        Err(_) => std::future::pending().await,
    }
}

fn plan(
    config: &Config,
    cores: usize,
    store: Store,
    clock: Arc<dyn Clock>,
    destinations: &Destinations,
    report: Report,
) -> anyhow::Result<Plan> {
    let threads = config.delivery.thread_count(cores);
    let client = &config.http.client;
    let delivery = &config.delivery;
    let tls = tls::client()?;
    let diallers = (0..threads).map(|_| Dialler { destinations: destinations.clone(), tls: tls.clone() });
    Ok(Plan {
        store,
        clock,
        threads,
        diallers: diallers.collect(),
        report,
        read_limits: ReadLimits {
            read: client.response_limit.as_usize(),
            keep: client.excerpt_limit.as_usize(),
        },
        limits: WorkerLimits {
            connect_timeout: client.connect_timeout,
            idle_timeout: client.idle_timeout,
            record_interval: delivery.record_interval,
            window: delivery.window as u64,
            waiting_limit: delivery.waiting_limit,
            issue_block: u64::from(delivery.issue_block),
            breaker: BreakerSettings {
                failures: delivery.breaker.failures,
                pause: delivery.breaker.pause,
                longest: delivery.breaker.longest_pause,
            },
            failing_after: delivery.failing_after,
            disable_after: delivery.disable_after,
            passive: PassiveLimits {
                maximum_lease: delivery.passive.maximum_lease,
                maximum_wait: delivery.passive.maximum_wait,
                waiters: delivery.passive.waiters,
            },
            state_bytes: delivery.state_bytes.as_usize() / threads,
            state_limit: delivery.state_limit.as_usize(),
        },
        connections: u32::try_from(client.connections).unwrap_or(u32::MAX),
        connections_per_host: u32::try_from(client.connections_per_host).unwrap_or(u32::MAX),
        tail_bytes: delivery.tail_bytes.as_usize(),
        page_rows: delivery.page_rows,
        page_bytes: delivery.page_bytes.as_usize(),
        observe: observe::Limits {
            quantity: delivery.attempts.quantity,
            age: delivery.attempts.age,
            bytes: delivery.attempts.bytes.as_usize() / threads,
            sample: delivery.attempts.sample,
            excerpt: client.excerpt_limit.as_usize(),
            watchers: delivery.attempts.watchers,
        },
        tracer: None,
    })
}

#[cfg(test)]
mod tests;
