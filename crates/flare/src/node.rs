//! The only wiring: configuration in, a running node out, and its end. A node listens, opens what is stored, is
//! assembled, loads, does its chores, runs, and stops, in this order.

pub mod bridges;
pub mod cluster;
pub mod engine;
mod plan;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::middleware::from_fn_with_state;
use flare_core::config::{AuthMode, Loaded};
use flare_core::door::{Clock, Entropy, SystemClock};
use flare_core::journey::{Event, Journey, Report};
use flare_core::network::Destinations;
use flare_core::operations::{App, Changes, Chore, Chores, Identity, Inboxes, OnFailure, Parts, When};
use flare_core::telemetry::Telemetry;
use flare_core::tls::ServerTls;
use flare_core::vault::Vault;
use flare_http::{Site, Watch};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::ui::{self, live::Live};
use crate::version;
use engine::Engine;
use plan::plan;

/// What goes along with a node that is run inside something larger.
pub struct Company {
    /// Where the API listens, if that is open already; otherwise it is opened as configured.
    pub listener: Option<std::net::TcpListener>,
    /// Called once the API answers, with its address and with what is cancelled when the node begins to stop.
    pub ready: Box<dyn FnOnce(SocketAddr, CancellationToken)>,
    /// Called when the node begins to stop, before anything of it does.
    pub stopping: Box<dyn Fn()>,
    /// Cancelled to stop the node, as a signal would.
    pub end: CancellationToken,
    /// Called before a second signal ends the process at once.
    pub abrupt: Box<dyn Fn()>,
}

impl Company {
    /// A node by itself.
    pub fn none() -> Company {
        Company {
            listener: None,
            ready: Box::new(|_, _| {}),
            stopping: Box::new(|| {}),
            end: CancellationToken::new(),
            abrupt: Box::new(|| {}),
        }
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
    let Company { listener, ready, stopping, end, abrupt } = company;
    // The address first: a second Flare on the same port should not touch the data.
    let listener = listen(listener, loaded.config.http.server.addr).await?;
    let address = listener.local_addr()?;
    let tls = ServerTls::open(&loaded.config.http.server.tls).context("TLS of the API")?.map(Arc::new);
    let (report, mut fatal, events) = Report::new();
    let engine = Engine::open(&loaded.config, &report).context("opening the store")?;
    let Assembled { app, inboxes, live, routes, watch } =
        assemble(loaded, cores, address, &engine, (report, events)).await?;
    load(&app).await?;

    // Whoever waits for something to come is answered at once when the node stops.
    let stop = app.stop.clone();
    ready(address, stop.clone());
    let mut chores = begin_chores(&app, inboxes, live, tls.clone())?;
    let server = flare_http::server::serve(listener, routes, watch, &app.config.http.server, tls, stop);
    let mut server = std::pin::pin!(server);
    let mut signals = Signals::listen()?;
    tokio::select! {
        () = &mut server => {}
        _ = signals.next() => {}
        () = end.cancelled() => {}
        reason = reason(&mut fatal) => anyhow::bail!(reason),
        ended = chores.ended() => anyhow::bail!(ended),
    }

    stopping();
    tracing::info!("stopping: finishing what is in flight; a second signal stops at once");
    let ending = async {
        // While it is answered as ever: what others have by then is sent on to them.
        leave(&app, &mut server).await;
        stop_all(&app, server, chores).await;
    };
    tokio::select! {
        () = ending => {}
        code = signals.next() => {
            abrupt();
            std::process::exit(code)
        }
        reason = reason(&mut fatal) => anyhow::bail!(reason),
    }
    engine.close();
    tracing::info!("stopped");
    Ok(())
}

/// Takes the address of the API.
async fn listen(open: Option<std::net::TcpListener>, addr: SocketAddr) -> anyhow::Result<TcpListener> {
    if let Some(open) = open {
        open.set_nonblocking(true)?;
        return Ok(TcpListener::from_std(open)?);
    }
    let listener = TcpListener::bind(addr).await;
    listener.with_context(|| format!("listening on {addr} (http.server.addr or --addr says where)"))
}

/// A node with everything in its place. Nothing of the catalog is in memory yet, and nobody is served.
struct Assembled {
    app: Arc<App>,
    inboxes: Inboxes,
    /// Who looks at pages that move.
    live: Arc<Live>,
    routes: Router,
    watch: Arc<Watch>,
}

/// Puts a node together over an open store.
async fn assemble(
    loaded: Loaded,
    cores: usize,
    address: SocketAddr,
    engine: &Engine,
    (report, events): (Report, mpsc::Receiver<Event>),
) -> anyhow::Result<Assembled> {
    let settings = loaded.entries();
    let config = loaded.config;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::of_process());
    // After the engine: the folder of the data is ours by then.
    let entropy = Entropy::of_machine();
    let vault = Vault::open(&config, &entropy).context("opening the key that seals secrets")?;
    let destinations = Destinations::new(&config.network, config.http.server.is_loopback());
    let telemetry = Telemetry::start(&config.telemetry, &clock).context("starting telemetry")?;
    let about = Identity::of(version::THIS, address, settings, &config);
    let joined = cluster::join(&config, engine, &clock, &about, &vault).await?;
    let mut plan = plan(&config, cores, engine.store(), clock.clone(), &destinations, report)?;
    plan.tenancy = joined.as_ref().map(|joined| joined.tenancy.clone());
    plan.tracer = telemetry.as_ref().map(Telemetry::tracer);
    let journey = Journey::start(plan).await.context("starting delivery")?;
    let live = Arc::new(Live::new(config.ui.listeners));
    let pages = if config.ui.enabled { ui::routes(live.clone()) } else { Site::default() };
    let ways = bridges::bridges(&config, &clock)?;
    let changes = Changes::new(config.http.server.max_connections);
    let (routes, patterns) = flare_http::site(pages, &changes).into_parts();
    let authenticates = config.auth.mode == AuthMode::Token;
    let watch = Watch::new(patterns, clock.clone()).authenticating(authenticates);
    let watch = Arc::new(watch.known_as(config.cluster.advertise.host_name()));
    let gate = authenticates.then(|| ui::access::rules(flare_http::gate(&config)));
    let (app, inboxes) = App::new(Parts {
        about,
        membership: joined.map(|joined| joined.membership),
        config,
        clock,
        entropy,
        store: engine.store(),
        journey,
        events,
        destinations,
        bridges: ways,
        vault,
        telemetry,
        changes,
        traffic: watch.traffic.clone(),
    });
    let app = Arc::new(app);
    let mut routes = routes.with_state(app.clone());
    if app.member.is_some() {
        routes = routes.layer(from_fn_with_state(app.clone(), flare_http::cluster::forward::forward));
    }
    let routes = match gate {
        Some(gate) => flare_http::guarded(routes, app.clone(), gate),
        None => routes,
    };
    Ok(Assembled { routes, app, inboxes, live, watch })
}

/// Takes over all that is stored. A disk that is full keeps nobody from reading what is there.
async fn load(app: &App) -> anyhow::Result<()> {
    match app.load().await {
        Err(error) if error.is_passing() => {
            app.load_to_read().await.context("reading the catalog")?;
            let error = &error as &dyn std::error::Error;
            tracing::error!(
                error,
                "the store takes no writes: reads are served, and deliveries begin when it does"
            );
        }
        loaded => loaded.context("reading the catalog")?,
    }
    if app.access.as_ref().is_some_and(|access| access.is_shut()) {
        anyhow::bail!(
            "auth.mode is \"token\", and nobody could be let in: there is neither auth.operator-token nor any token; give \
             the operator one, best as FLARE_AUTH_OPERATOR_TOKEN"
        );
    }
    let (resources, subscriptions) = app.registry.counts();
    tracing::info!(
        version = version::VERSION,
        sha = version::SHA,
        address = %app.about.address,
        ui = app.config.ui.enabled.then(|| ui_address(app)),
        resources,
        subscriptions,
        "Flare is ready"
    );
    Ok(())
}

/// Where a browser on this machine finds the web interface. An address that stands for all of them is none to go to.
fn ui_address(app: &App) -> String {
    let mut address = app.about.address;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    let scheme = if app.config.http.server.tls.certificate.path().is_some() { "https" } else { "http" };
    format!("{scheme}://{address}{}", ui::HOME)
}

/// Begins what the node does by itself, its pages that move included.
fn begin_chores(
    app: &Arc<App>,
    inboxes: Inboxes,
    live: Arc<Live>,
    tls: Option<Arc<ServerTls>>,
) -> anyhow::Result<Chores> {
    let mut chores = app.chores(inboxes);
    if let Some(tls) = tls {
        let every = app.config.http.server.tls.reload_interval;
        let look = Box::pin(follow_certificates(tls, signal(SignalKind::hangup())?, every));
        chores.push(Chore::new(
            "look for another certificate",
            When::Every(every),
            OnFailure::NextTurn,
            look,
        ));
    }
    let app = app.clone();
    let pages = async move { ui::live::run(&app, &live).await };
    chores.push(Chore::new("render live pages", When::Told, OnFailure::NextTurn, Box::pin(pages)));
    Ok(Chores::start(chores))
}

/// Takes up certificates that were replaced: when told, and by itself. What cannot be used is said once, and what there was
/// stays.
async fn follow_certificates(tls: Arc<ServerTls>, mut hangup: Signal, every: Duration) {
    let mut said = None;
    loop {
        let told = tokio::select! {
            _ = hangup.recv() => true,
            () = tokio::time::sleep(every) => false,
        };
        match tls.reload() {
            Ok(true) => tracing::info!("another certificate of the API is taken up"),
            Ok(false) if told => tracing::info!("the certificate of the API is as it was"),
            Ok(false) => {}
            Err(error) => {
                let words = format!("{error:#}");
                if told || said.as_ref() != Some(&words) {
                    tracing::error!(
                        error = words,
                        "the certificate of the API cannot be used; the former stays"
                    );
                }
                said = Some(words);
                continue;
            }
        }
        said = None;
    }
}

/// Leaves the cluster, if the node is in one, and serves meanwhile.
async fn leave(app: &App, server: &mut (impl Future<Output = ()> + Unpin)) {
    tokio::select! {
        () = app.leave_cluster() => {}
        () = server => {}
    }
}

/// Ends everything in its order: who is served, what is being changed, what is in flight, and what tells of it.
async fn stop_all(app: &App, server: impl Future<Output = ()>, chores: Chores) {
    app.stop.cancel();
    app.journey.observe().close();
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
    if let Err(error) = app.store_last_used().await {
        tracing::warn!(%error, "when tokens were last used could not be stored");
    }
    drop(chores);
    app.end_telemetry().await;
}

/// What a user tells the process.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one: the exit code of a process that it ends.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => 130,
            _ = self.terminate.recv() => 143,
        }
    }
}

async fn reason(fatal: &mut watch::Receiver<Option<String>>) -> String {
    match fatal.wait_for(Option::is_some).await {
        Ok(reason) => reason.clone().unwrap_or_default(),
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
