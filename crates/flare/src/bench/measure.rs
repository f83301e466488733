//! In: the address of a node. Out: a [`Report`], after an origin has put documents and every client was told of each.

use std::convert::Infallible;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use flare_core::door::{Clock as _, SystemClock};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Report;
use super::spread::Durations;
use crate::cli::remote::client::{Client, parse_url};
use crate::cli::{BenchArgs, Format, progress};

/// How often it is shown how far it is.
const LOOK: Duration = Duration::from_millis(200);

/// How long an origin waits that was told to come back later.
const LATER: Duration = Duration::from_millis(50);

/// What a measurement needs to know.
pub struct Measuring {
    /// What is measured.
    pub args: BenchArgs,
    /// How it is shown.
    pub format: Format,
    /// Cancelled when everything is measured, so that the node stops.
    pub end: CancellationToken,
    /// Cancelled when the node has stopped.
    pub over: CancellationToken,
}

/// What origin and clients share.
struct Board {
    clock: SystemClock,
    /// The next document to put.
    next: AtomicU32,
    /// When each PUT began, in nanoseconds of the clock.
    began: Vec<AtomicU64>,
    accept: Durations,
    delivery: Durations,
    /// Deliveries, and how many there will be.
    told: AtomicU64,
    all: u64,
    done: Notify,
}

impl Measuring {
    /// Measures until every client has everything; nothing if the node is `stopping` before that.
    pub fn run(self, addr: SocketAddr, stopping: CancellationToken) -> anyhow::Result<Option<Report>> {
        // However this ends, the node does too.
        let _end = self.end.clone().drop_guard();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("flare-bench")
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let measured = stopping.run_until_cancelled(self.measure(addr)).await.transpose();
            self.end.cancel();
            self.over.cancelled().await;
            measured
        })
    }

    async fn measure(&self, addr: SocketAddr) -> anyhow::Result<Report> {
        let BenchArgs { documents, clients, connections } = self.args;
        let url = parse_url(&format!("http://{addr}")).map_err(anyhow::Error::msg)?;
        let board = Arc::new(Board::new(documents, clients));
        let _clients = tell(&board, &mut Client::new(url.clone()), clients).await?;
        let began = board.clock.monotonic();
        let mut origin = JoinSet::new();
        for _ in 0..connections.min(documents) {
            origin.spawn(put(board.clone(), url.clone()));
        }
        let mut accepted = began;
        let shown = self.format == Format::Human && io::stderr().is_terminal();
        loop {
            tokio::select! {
                Some(ended) = origin.join_next() => {
                    ended.context("a part of the origin panicked")??;
                    accepted = board.clock.monotonic();
                }
                () = board.done.notified() => break,
                () = tokio::time::sleep(LOOK), if shown => board.show()?,
            }
        }
        if shown {
            // The line is free again.
            write!(io::stderr(), "\r\x1b[K")?;
        }
        while let Some(ended) = origin.join_next().await {
            ended.context("a part of the origin panicked")??;
            accepted = board.clock.monotonic();
        }
        let seconds = |until: Duration| until.saturating_sub(began).as_secs_f64().max(0.001);
        let whole = seconds(board.clock.monotonic());
        let round = |number: f64| (number * 10.0).round() / 10.0;
        Ok(Report {
            documents,
            clients,
            connections,
            seconds: (whole * 1000.0).round() / 1000.0,
            accepted_per_second: round(f64::from(documents) / seconds(accepted)),
            deliveries_per_second: round(board.all as f64 / whole),
            accept: board.accept.spread(),
            delivery: board.delivery.spread(),
        })
    }
}

impl Board {
    fn new(documents: u32, clients: u32) -> Board {
        Board {
            clock: SystemClock::of_process(),
            next: AtomicU32::new(0),
            began: (0..documents).map(|_| AtomicU64::new(0)).collect(),
            accept: Durations::new(),
            delivery: Durations::new(),
            told: AtomicU64::new(0),
            all: u64::from(documents) * u64::from(clients),
            done: Notify::new(),
        }
    }

    fn show(&self) -> io::Result<()> {
        let told = self.told.load(Ordering::Relaxed);
        let mut error = io::stderr();
        write!(error, "\r{} {told} of {} deliveries\x1b[K", progress::bar(told, self.all), self.all)?;
        error.flush()
    }

    /// A client has heard of a document.
    fn told(&self, document: &str) {
        let number: Option<usize> = document.rsplit('/').next().and_then(|number| number.parse().ok());
        let Some(began) = number.and_then(|number| self.began.get(number)) else { return };
        let began = Duration::from_nanos(began.load(Ordering::Relaxed));
        self.delivery.add(self.clock.monotonic().saturating_sub(began));
        if self.told.fetch_add(1, Ordering::Relaxed) + 1 == self.all {
            self.done.notify_one();
        }
    }
}

/// A resource, and clients that are told of its documents for as long as what is answered lives.
async fn tell(
    board: &Arc<Board>,
    api: &mut Client,
    clients: u32,
) -> anyhow::Result<JoinSet<io::Result<Infallible>>> {
    let draft = json!({"endpoint": "http://bench.test/documents/{id}", "change": {"field": "revision"}});
    let created = api.post("/resources", &draft).await?;
    let resource = created["id"].as_str().context("a resource has an id")?;
    let mut listening = JoinSet::new();
    for _ in 0..clients {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let draft = json!({"endpoint": {"url": format!("http://{}/{{id}}", listener.local_addr()?)}});
        api.post(&format!("/resources/{resource}/subscriptions"), &draft).await?;
        listening.spawn(listen(board.clone(), listener));
    }
    Ok(listening)
}

/// A client. Bound: as many connections as Flare opens to one host.
async fn listen(board: Arc<Board>, listener: TcpListener) -> io::Result<Infallible> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        while connections.try_join_next().is_some() {}
        stream.set_nodelay(true)?;
        let board = board.clone();
        let service = service_fn(move |request| answer(board.clone(), request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // How it ends is Flare's to see.
        connections.spawn(async move { drop(connection.await) });
    }
}

async fn answer(
    board: Arc<Board>,
    request: Request<Incoming>,
) -> Result<Response<Empty<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    body.collect().await?;
    let document = head.headers.get("flare-document").and_then(|document| document.to_str().ok());
    document.into_iter().for_each(|document| board.told(document));
    let mut response = Response::new(Empty::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// One connection of the origin: puts documents until there are no more.
async fn put(board: Arc<Board>, url: Uri) -> anyhow::Result<()> {
    let mut api = Client::new(url);
    loop {
        let number = board.next.fetch_add(1, Ordering::Relaxed);
        let Some(noted) = board.began.get(number as usize) else { return Ok(()) };
        let began = board.clock.monotonic();
        noted.store(began.as_nanos() as u64, Ordering::Relaxed);
        let path = format!("/documents/http://bench.test/documents/{number}");
        let document = json!({"revision": 1, "name": "Ada Lovelace", "quantity": number, "open": true});
        loop {
            let answer = api.ask(&Method::PUT, &path, Some(&document)).await?;
            match answer.status {
                StatusCode::ACCEPTED => break,
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                    tokio::time::sleep(LATER).await
                }
                status => bail!("PUT {path}: {status} {}", String::from_utf8_lossy(&answer.body)),
            }
        }
        board.accept.add(board.clock.monotonic().saturating_sub(began));
    }
}
