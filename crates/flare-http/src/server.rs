//! The listener: connections in, each served by hyper within the configured bounds, until told to stop.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use flare_core::config::HttpServerConfig;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::browser::{self, Admitted, Visitors};
use super::error::ApiError;
use super::refusal::Refusing;
use super::seats::{Seat, Seats};
use super::stall::Stalling;
use super::turn::{AnswerBody, RequestBody, Turn, Turns};
use super::{Watch, debug, head};

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
    stop: CancellationToken,
) {
    let (protocol, hurried) = protocols(config);
    let (seats, visitors) = (Seats::new(config), Arc::new(Visitors::new(config)));
    let (connections, cut) = (TaskTracker::new(), Arc::new(AtomicU64::new(0)));
    while let Some(accepted) = stop.run_until_cancelled(seats.accept(&listener)).await {
        let Ok(Some((stream, peer, seat))) = accepted else { continue };
        let turns = Turns::new();
        let protocol = if seat.limited.is_some() { &hurried } else { &protocol };
        let seat = Arc::new(seat);
        let routes = TowerToHyperService::new(routes.clone());
        let connected = watch.traffic.connected();
        let service = service_fn({
            let (watch, turns, visitors, seat) =
                (watch.clone(), turns.clone(), visitors.clone(), seat.clone());
            move |request: Request<Incoming>| {
                turns.pass_to(Turn::Handling);
                let mut request = request.map(|body| RequestBody::new(body, turns.clone()));
                head::without_trailing_slash(&mut request);
                debug::introduce(&mut request, peer);
                let (underway, watch, turns) = (watch.begin(&request), watch.clone(), turns.clone());
                let answering =
                    look(&request, &visitors, &seat).map(|for_whom| (routes.call(request), for_whom));
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
        });
        let stream = Stalling::new(TokioIo::new(stream), config.timeout);
        let stream = Refusing::new(stream, head_limit(config));
        let connection = protocol.serve_connection(stream, service);
        let (stop, cut, grace) = (stop.clone(), cut.clone(), config.grace);
        connections.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let ended = match stop.run_until_cancelled(connection.as_mut()).await {
                Some(ended) => Some(ended),
                None => {
                    connection.as_mut().graceful_shutdown();
                    finish(connection, &turns, grace).await
                }
            };
            match ended {
                Some(Ok(())) => {}
                Some(Err(error)) => tracing::debug!(error = %error, "a connection ended early"),
                None => _ = cut.fetch_add(1, Ordering::Relaxed),
            }
            drop((connected, seat));
        });
    }
    // Whoever connects from now on is told at once that there is nobody.
    drop(listener);
    connections.close();
    connections.wait().await;
    let cut = cut.load(Ordering::Relaxed);
    if cut > 0 {
        tracing::info!(connections = cut, "cut those whose clients did not go on (http.server.grace)");
    }
}

/// How long a head may be: hyper takes no less.
fn head_limit(config: &HttpServerConfig) -> usize {
    config.header_limit.as_usize().max(8192)
}

/// How connections are served: those with a place of their own, and those that are to leave soon.
fn protocols(config: &HttpServerConfig) -> (http1::Builder, http1::Builder) {
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout)
        .max_buf_size(head_limit(config))
        .half_close(false);
    let mut hurried = protocol.clone();
    hurried.header_read_timeout(config.header_timeout.min(HURRY)).keep_alive(false);
    (protocol, hurried)
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
            serving.spawn(async move { serve(listener, routes, watch, &config, stopped).await });
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
