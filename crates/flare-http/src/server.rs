//! The listener: connections in, each served by hyper within the configured bounds, until told to stop.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use flare_core::config::HttpServerConfig;
use flare_core::tls::ServerTls;
use http::header::{HOST, HeaderValue};
use http::{Request, Version};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::browser::{self, Admitted, Visitors};
use super::error::ApiError;
use super::line::Line;
use super::multiplex::Multiplexed;
use super::refusal::Refusing;
use super::seats::{Seat, Seats};
use super::stall::Stalling;
use super::turn::{AnswerBody, RequestBody, Turn, Turns};
use super::{Watch, debug, head};

pub use super::debug::Peer;

/// How long one who has no place of its own may take for the head of a request.
const HURRY: Duration = Duration::from_secs(1);

/// Serves until `stop`; then answers what it can within the configured grace and returns. Later than that, only what was
/// being handled when it ended goes on, to its own end; who has not sent the whole of a request, or does not read an
/// answer, is cut.
pub async fn serve(
    listener: TcpListener,
    routes: Router,
    watch: Arc<Watch>,
    config: &HttpServerConfig,
    tls: Option<Arc<ServerTls>>,
    stop: CancellationToken,
) {
    let (seats, connections) = (Seats::new(config), TaskTracker::new());
    let front = Arc::new(Front::new(routes, watch, config, tls, stop.clone(), connections.clone()));
    while let Some(accepted) = stop.run_until_cancelled(seats.accept(&listener)).await {
        let Ok(Some((stream, peer, seat))) = accepted else { continue };
        connections.spawn(front.clone().serve_one(stream, peer, Arc::new(seat)));
    }
    // Whoever connects from now on is told at once that there is nobody.
    drop(listener);
    connections.close();
    connections.wait().await;
    let cut = front.cut.load(Ordering::Relaxed);
    if cut > 0 {
        tracing::info!(connections = cut, "cut those whose clients did not go on (http.server.grace)");
    }
}

/// What all connections share.
pub(super) struct Front {
    routes: TowerToHyperService<Router>,
    watch: Arc<Watch>,
    visitors: Visitors,
    one_by_one: http1::Builder,
    /// The same for those that are to leave soon.
    hurried: http1::Builder,
    pub(super) multiplexed: Multiplexed,
    tls: Option<Arc<ServerTls>>,
    pub(super) stop: CancellationToken,
    /// How many connections did not come to their own end.
    cut: AtomicU64,
    /// How long the other side may take nothing, and how long it may take for a head.
    pub(super) timeout: Duration,
    header_timeout: Duration,
    pub(super) grace: Duration,
    head_limit: usize,
}

impl Front {
    fn new(
        routes: Router,
        watch: Arc<Watch>,
        config: &HttpServerConfig,
        tls: Option<Arc<ServerTls>>,
        stop: CancellationToken,
        tasks: TaskTracker,
    ) -> Front {
        // Hyper takes no less.
        let head_limit = config.header_limit.as_usize().max(8192);
        let mut one_by_one = http1::Builder::new();
        one_by_one
            .timer(TokioTimer::new())
            .header_read_timeout(config.header_timeout)
            .max_buf_size(head_limit)
            .half_close(false);
        let mut hurried = one_by_one.clone();
        hurried.header_read_timeout(config.header_timeout.min(HURRY)).keep_alive(false);
        Front {
            routes: TowerToHyperService::new(routes),
            visitors: Visitors::new(config, watch.authenticates, watch.own_name.clone()),
            watch,
            one_by_one,
            hurried,
            multiplexed: Multiplexed::new(config, head_limit, tasks),
            tls,
            stop,
            cut: AtomicU64::new(0),
            timeout: config.timeout,
            header_timeout: config.header_timeout,
            grace: config.grace,
            head_limit,
        }
    }

    /// One connection, to its end.
    async fn serve_one(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, seat: Arc<Seat>) {
        let connected = self.watch.traffic.connected();
        let ended = match self.agree(stream, &seat).await {
            None => Some(Ok(())),
            Some(line) if line.multiplexes() => {
                self.clone().serve_at_once(line, peer, &seat, self.patience(&seat)).await
            }
            Some(line) => self.clone().serve_one_by_one(line, peer, &seat).await,
        };
        match ended {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::debug!(error = %error, "a connection ended early"),
            None => _ = self.cut.fetch_add(1, Ordering::Relaxed),
        }
        drop((connected, seat));
    }

    /// How long a head, or what comes before it, may take.
    fn patience(&self, seat: &Seat) -> Duration {
        if seat.limited.is_some() { self.header_timeout.min(HURRY) } else { self.header_timeout }
    }

    /// Agrees on what is spoken. Nothing where that fails, takes too long, or the node stops.
    async fn agree(&self, stream: TcpStream, seat: &Seat) -> Option<Line> {
        let Some(tls) = &self.tls else { return Some(Line::Plain(stream)) };
        let agreeing = TlsAcceptor::from(tls.config()).accept(stream);
        let agreed = tokio::time::timeout(self.patience(seat), agreeing);
        match self.stop.run_until_cancelled(agreed).await? {
            Ok(Ok(stream)) => Some(Line::Tls(Box::new(stream))),
            Ok(Err(error)) => {
                tracing::debug!(error = %error, "TLS was not agreed on");
                None
            }
            Err(_) => None,
        }
    }

    async fn serve_one_by_one(
        self: Arc<Self>,
        line: Line,
        peer: SocketAddr,
        seat: &Arc<Seat>,
    ) -> Option<hyper::Result<()>> {
        let turns = Turns::new();
        let protocol = if seat.limited.is_some() { &self.hurried } else { &self.one_by_one };
        let service = service_fn({
            let (front, turns, seat) = (self.clone(), turns.clone(), seat.clone());
            move |request| front.answer(request, turns.clone(), peer, &seat)
        });
        let stream = Stalling::new(TokioIo::new(line), self.timeout);
        let stream = Refusing::new(stream, self.head_limit);
        let mut connection = std::pin::pin!(protocol.serve_connection(stream, service));
        match self.stop.run_until_cancelled(connection.as_mut()).await {
            Some(ended) => Some(ended),
            None => {
                connection.as_mut().graceful_shutdown();
                finish(connection, &turns, self.grace).await
            }
        }
    }

    /// Answers a request. What comes before the answer is awaited is done at once.
    pub(super) fn answer(
        &self,
        request: Request<Incoming>,
        turns: Arc<Turns>,
        peer: SocketAddr,
        seat: &Seat,
    ) -> impl Future<Output = Result<http::Response<AnswerBody>, Infallible>> + Send + use<> {
        turns.pass_to(Turn::Handling);
        let mut request = request.map(|body| RequestBody::new(body, turns.clone()));
        name_the_host(&mut request);
        head::without_trailing_slash(&mut request);
        debug::introduce(&mut request, peer, self.watch.authenticates);
        let (underway, watch) = (self.watch.begin(&request), self.watch.clone());
        let answering =
            look(&request, &self.visitors, seat).map(|for_whom| (self.routes.call(request), for_whom));
        async move {
            let answer = match answering {
                Ok((answering, Admitted::Theirs(origin))) => {
                    let mut answer = answering.await?;
                    browser::share(&mut answer, origin);
                    answer
                }
                Ok((answering, _)) => answering.await?,
                Err(refusal) => *refusal,
            };
            underway.answered(answer.status(), watch.clock.monotonic());
            turns.pass_to(Turn::Reading);
            Ok::<_, Infallible>(answer.map(|body| AnswerBody::new(body, turns)))
        }
    }
}

/// HTTP/2 names the host beside the path; from here on it is where HTTP/1.1 has it.
fn name_the_host<B>(request: &mut Request<B>) {
    if request.version() < Version::HTTP_2 || request.headers().contains_key(HOST) {
        return;
    }
    let asked =
        request.uri().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    if let Some(host) = asked {
        request.headers_mut().insert(HOST, host);
    }
}

/// Whether a request is handed to its operation, and if not, the answer.
fn look<B>(request: &Request<B>, visitors: &Visitors, seat: &Seat) -> Result<Admitted, Box<Response>> {
    if let Some(refusal) = head::refuse(request) {
        return Err(Box::new(refusal));
    }
    if let Some(why) = seat.refuses(request.uri().path()) {
        return Err(Box::new(ApiError::unavailable(why).into_response()));
    }
    match visitors.admit(request) {
        Ok(Admitted::Preflight(origin)) => Err(Box::new(browser::preflight(origin))),
        Ok(admitted) => Ok(admitted),
        Err(refusal) => Err(Box::new(refusal.into_response())),
    }
}

/// Lets a connection come to its end; nothing when it was cut.
async fn finish<C: Future>(mut connection: Pin<&mut C>, turns: &Turns, grace: Duration) -> Option<C::Output> {
    let mut patience = std::pin::pin!(tokio::time::sleep(grace));
    let mut handled_late = false;
    std::future::poll_fn(|context| {
        if let Poll::Ready(ended) = connection.as_mut().poll(context) {
            return Poll::Ready(Some(ended));
        }
        while patience.as_mut().poll(context).is_ready() {
            match turns.close(context) {
                Turn::Handling => {
                    handled_late = true;
                    return Poll::Pending;
                }
                // It could not be read earlier, so the client has as long for it as others had.
                Turn::Reading if std::mem::take(&mut handled_late) => {
                    patience.set(tokio::time::sleep(grace));
                }
                Turn::Reading | Turn::Sending => return Poll::Ready(None),
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body, Bytes};
    use axum::routing::{get, post, put};
    use flare_core::door::ManualClock;
    use flare_core::observe::count::Traffic;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::sync::Notify;
    use tokio::task::JoinSet;

    /// Far less than any other limit of the server, and far more than anything here takes.
    const SOON: Duration = Duration::from_secs(10);

    struct Served {
        addr: SocketAddr,
        stop: CancellationToken,
        serving: JoinSet<()>,
        traffic: Arc<Traffic>,
        /// Told when a request is being handled that waits for `go_on`.
        begun: Arc<Notify>,
        go_on: Arc<Notify>,
    }

    impl Served {
        async fn start() -> Served {
            Served::with(HttpServerConfig { grace: Duration::from_millis(100), ..Default::default() }).await
        }

        async fn with(config: HttpServerConfig) -> Served {
            let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
            let slow = {
                let (begun, go_on) = (begun.clone(), go_on.clone());
                move |body: Bytes| async move {
                    begun.notify_one();
                    go_on.notified().await;
                    body
                }
            };
            let routes = Router::new()
                .route("/slow", put(slow))
                .route("/echo", post(|body: Body| async { body }))
                .route("/apart", post(read_apart))
                .route("/healthz", get(|| async { "well" }))
                .route("/large", get(|| async { vec![b'x'; 32 << 20] }));
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (addr, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
            let watch = Arc::new(Watch::new(Vec::new(), Arc::new(ManualClock::default())));
            let counted = watch.traffic.clone();
            let mut serving = JoinSet::new();
            let stopped = stop.clone();
            serving.spawn(async move { serve(listener, routes, watch, &config, None, stopped).await });
            Served { addr, stop, serving, traffic: counted, begun, go_on }
        }

        async fn sent(&self, bytes: &str) -> TcpStream {
            let mut stream = TcpStream::connect(self.addr).await.unwrap();
            stream.write_all(bytes.as_bytes()).await.unwrap();
            stream
        }

        /// Waits for the end of the server.
        async fn ended(mut self) {
            let ended = tokio::time::timeout(SOON, self.serving.join_next()).await;
            ended.expect("it ends soon").expect("it was started").expect("it does not panic");
        }
    }

    /// Reads the body in a task of its own, as what changes something does.
    async fn read_apart(body: Body) -> &'static str {
        let mut apart = JoinSet::new();
        apart.spawn(axum::body::to_bytes(body, usize::MAX));
        apart.join_next().await.map_or("nothing", |_| "read")
    }

    async fn read_all(stream: &mut TcpStream) -> String {
        let mut all = Vec::new();
        // A reset is an end too.
        let _ = tokio::time::timeout(SOON, stream.read_to_end(&mut all)).await.expect("it is closed");
        String::from_utf8(all).unwrap()
    }

    #[tokio::test]
    async fn who_has_not_sent_a_whole_request_or_does_not_read_is_cut_after_the_grace() {
        let head = "host: localhost\r\ncontent-length: 100\r\n\r\nhalf";
        for half in [
            "GET /large HTTP/1.1\r\nhos".to_owned(),
            format!("PUT /slow HTTP/1.1\r\n{head}"),
            format!("POST /apart HTTP/1.1\r\n{head}"),
            format!("POST /echo HTTP/1.1\r\n{head}"),
            "GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
            // A whole one before, on the same connection.
            "POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\n.GET /large HTTP/1.1\r\nhos"
                .to_owned(),
        ] {
            let served = Served::start().await;
            let mut stream = served.sent(&half).await;
            if half.contains("/echo") {
                // What came is answered at once.
                stream.read_exact(&mut [0; 12]).await.unwrap();
            }
            served.stop.cancel();
            served.ended().await;
        }
    }

    #[tokio::test]
    async fn an_answer_that_nobody_reads_is_given_up_after_the_timeout() {
        let timeout = Duration::from_millis(100);
        let served = Served::with(HttpServerConfig { timeout, ..Default::default() }).await;
        let mut stream = served.sent("GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        stream.read_exact(&mut [0; 12]).await.unwrap();
        assert_eq!(served.traffic.connections(), 1);
        let gone = async {
            while served.traffic.connections() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(SOON, gone).await.expect("its connection is free again");
        served.stop.cancel();
        served.ended().await;
    }

    #[tokio::test]
    async fn what_is_being_handled_when_the_grace_ends_is_finished_and_answered() {
        let served = Served::start().await;
        let mut half = served.sent("GET /large HTTP/1.1\r\nhos").await;
        let request = "PUT /slow HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nwhole";
        let mut whole = served.sent(request).await;
        served.begun.notified().await;
        served.stop.cancel();
        assert_eq!(read_all(&mut half).await, "", "the grace is over");
        served.go_on.notify_one();
        let answer = read_all(&mut whole).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("whole"), "{answer}");
        served.ended().await;
    }

    #[tokio::test]
    async fn nobody_is_kept_waiting_who_connects_while_it_stops() {
        let served = Served::start().await;
        let request = "PUT /slow HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
        let _whole = served.sent(request).await;
        served.begun.notified().await;
        served.stop.cancel();
        let refused = async { while TcpStream::connect(served.addr).await.is_ok() {} };
        tokio::time::timeout(SOON, refused).await.expect("there is nobody");
        served.go_on.notify_one();
        served.ended().await;
    }

    #[tokio::test]
    async fn a_head_that_is_refused_is_answered_and_its_connection_closed() {
        let served = Served::start().await;
        for head in ["", "host: localhost\r\ntransfer-encoding: gzip, chunked\r\n"] {
            let mut stream = served.sent(&format!("GET /large HTTP/1.1\r\n{head}\r\n")).await;
            let answer = read_all(&mut stream).await;
            assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("\"detail\""), "{answer}");
        }
        served.stop.cancel();
        served.ended().await;
    }

    #[tokio::test]
    async fn a_node_that_is_full_still_says_how_it_fares() {
        let config = HttpServerConfig { max_connections: 2, spare_connections: 1, ..Default::default() };
        let served = Served::with(config).await;
        let idle = [served.sent("").await, served.sent("").await];
        let ask = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
        let health = read_all(&mut served.sent(&ask("/healthz")).await).await;
        assert!(health.starts_with("HTTP/1.1 200") && health.ends_with("well"), "{health}");
        let large = read_all(&mut served.sent(&ask("/large")).await).await;
        assert!(large.starts_with("HTTP/1.1 503") && large.contains("max-connections"), "{large}");
        assert!(large.contains("retry-after"), "{large}");
        // One who says nothing does not keep the spare place.
        let _silent = served.sent("").await;
        let health = read_all(&mut served.sent(&ask("/healthz")).await).await;
        assert!(health.starts_with("HTTP/1.1 200"), "{health}");
        drop(idle);
        served.stop.cancel();
        served.ended().await;
    }

    #[tokio::test]
    async fn one_address_cannot_take_all_connections() {
        let config = HttpServerConfig { connections_per_peer: 1, spare_connections: 1, ..Default::default() };
        let served = Served::with(config).await;
        let request = "POST /echo HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n";
        let mut first = served.sent(request).await;
        first.read_exact(&mut [0; 12]).await.unwrap();
        let refused = read_all(&mut served.sent(request).await).await;
        assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("connections-per-peer"), "{refused}");
        drop(first);
        let again = async {
            while !read_some(&mut served.sent(request).await).await.starts_with("HTTP/1.1 200") {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, again).await.expect("its place is free again");
        served.stop.cancel();
        served.ended().await;
    }

    async fn read_some(stream: &mut TcpStream) -> String {
        let mut some = vec![0; 1024];
        let count = stream.read(&mut some).await.unwrap_or(0);
        String::from_utf8_lossy(&some[..count]).into_owned()
    }
}
