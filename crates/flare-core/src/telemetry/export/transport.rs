//! In: an encoded message. Out: a collector took it, or why not and whether to try again. One connection, kept.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, TE, USER_AGENT};
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::task::TaskTracker;

use super::answer;
use crate::config::{Protocol, TelemetryConfig};
use crate::notification::host::HostKey;
use crate::{tls, version};

/// The most of an answer that is read.
const ANSWER_LIMIT: usize = 64 * 1024;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
}

impl Signal {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Traces => "traces",
            Signal::Metrics => "metrics",
        }
    }
}

/// What a collector did not take of a message that it accepted: how many, and why.
pub type Partial = Option<(u64, String)>;

/// Why a message was not taken.
#[derive(Debug)]
pub struct Refusal {
    /// In words.
    pub why: String,
    /// Whether to try again, and what the collector says of when.
    pub retry: Retry,
}

/// Whether to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It would be refused again.
    Never,
    /// At once on another connection, if this one had been used before: an idle one may be closed at any time.
    Now,
    /// After a while of one's own choice.
    Later,
    /// After this time.
    After(Duration),
}

impl Refusal {
    fn later(why: impl Into<String>) -> Refusal {
        Refusal { why: why.into(), retry: Retry::Later }
    }
}

/// The way to a collector.
pub struct Transport {
    protocol: Protocol,
    host: HostKey,
    authority: HeaderValue,
    /// What stands before the path of a signal.
    base: String,
    headers: HeaderMap,
    timeout: Duration,
    tls: Arc<rustls::ClientConfig>,
    connection: Option<Connection>,
    tasks: TaskTracker,
}

enum Connection {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Transport {
    /// The way that the configuration names; nothing is dialled yet. The address is the operator's own word, so that
    /// the rules for the addresses of clients do not apply to it.
    pub fn new(config: &TelemetryConfig) -> anyhow::Result<Transport> {
        let endpoint = config.endpoint.get().context("there is no endpoint")?;
        let mut tls = rustls::ClientConfig::clone(&*tls::client_trusting(
            &config.certificate,
            "telemetry.certificate",
        )?);
        if config.protocol == Protocol::Grpc {
            tls.alpn_protocols = vec![b"h2".to_vec()];
        }
        let mut headers: HeaderMap = config.headers.reveal().collect();
        let agent = format!("Flare/{}", version::VERSION);
        headers.insert(USER_AGENT, HeaderValue::try_from(agent).context("the version is no header")?);
        match config.protocol {
            Protocol::Grpc => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
                headers.insert(TE, HeaderValue::from_static("trailers"));
                let wait = format!("{}m", config.timeout.as_millis().clamp(1, 99_999_999));
                headers.insert("grpc-timeout", HeaderValue::try_from(wait).context("a time is no header")?);
            }
            Protocol::Http => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
            }
        }
        let authority = endpoint.authority().context("the endpoint has no host")?;
        Ok(Transport {
            protocol: config.protocol,
            host: HostKey::of(&endpoint),
            authority: HeaderValue::from_str(authority.as_str()).context("the endpoint's host")?,
            base: endpoint.path().trim_end_matches('/').to_owned(),
            headers,
            timeout: config.timeout,
            tls: Arc::new(tls),
            connection: None,
            tasks: TaskTracker::new(),
        })
    }

    /// Sends one message and reads the answer, within the time that an export may take.
    pub async fn send(&mut self, signal: Signal, message: Bytes) -> Result<Partial, Refusal> {
        let timeout = self.timeout;
        let sent = match tokio::time::timeout(timeout, self.exchange_twice(signal, message)).await {
            Ok(sent) => sent,
            Err(_) => {
                let limit = flare_model::duration::HumanDuration(timeout);
                Err(Refusal::later(format!("no answer within {limit} (telemetry.timeout)")))
            }
        };
        if sent.is_err() {
            // Whatever is wrong with it, the next one is another.
            self.connection = None;
        }
        sent
    }

    async fn exchange_twice(&mut self, signal: Signal, message: Bytes) -> Result<Partial, Refusal> {
        let reused = self.connection.is_some();
        match self.exchange(signal, message.clone()).await {
            Err(Refusal { retry: Retry::Now, .. }) if reused => {
                self.connection = None;
                self.exchange(signal, message).await
            }
            sent => sent,
        }
    }

    async fn exchange(&mut self, signal: Signal, message: Bytes) -> Result<Partial, Refusal> {
        let request = self.request(signal, message).map_err(|e| Refusal::later(e.to_string()))?;
        if !self.connection.as_ref().is_some_and(Connection::is_usable) {
            let connection = self.connect().await;
            self.connection =
                Some(connection.map_err(|e| Refusal::later(format!("could not connect: {e}")))?);
        }
        let connection = self.connection.as_mut().expect("it was connected");
        let broke = |error: hyper::Error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            let why = format!("the connection broke: {error}{}", cause.unwrap_or_default());
            Refusal { why, retry: Retry::Now }
        };
        let response = match connection {
            Connection::One(sender) => {
                sender.ready().await.map_err(broke)?;
                sender.send_request(request).await.map_err(broke)?
            }
            Connection::Two(sender) => {
                sender.ready().await.map_err(broke)?;
                sender.send_request(request).await.map_err(broke)?
            }
        };
        answer(self.protocol, response).await
    }

    fn request(&self, signal: Signal, message: Bytes) -> Result<Request<Full<Bytes>>, http::Error> {
        let mut request = Request::builder().method(Method::POST);
        let body = match self.protocol {
            Protocol::Http => {
                let path = match signal {
                    Signal::Traces => "/v1/traces",
                    Signal::Metrics => "/v1/metrics",
                };
                request = request.uri(format!("{}{path}", self.base)).header(HOST, &self.authority);
                message
            }
            Protocol::Grpc => {
                let path = match signal {
                    Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
                    Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
                };
                let scheme = if self.host.https { "https" } else { "http" };
                let uri =
                    Uri::builder().scheme(scheme).authority(self.authority.as_bytes()).path_and_query(path);
                request = request.uri(uri.build()?);
                // Not compressed, and its length: then the message.
                let mut framed = BytesMut::with_capacity(message.len() + 5);
                framed.put_u8(0);
                framed.put_u32(message.len() as u32);
                framed.put_slice(&message);
                framed.freeze()
            }
        };
        let mut request = request.body(Full::new(body))?;
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }

    async fn connect(&self) -> io::Result<Connection> {
        let name = self.host.host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((name, self.host.port)).await?;
        let _ = stream.set_nodelay(true);
        if !self.host.https {
            return self.shake_hands(TokioIo::new(stream)).await;
        }
        let server = ServerName::try_from(name.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let stream = TlsConnector::from(self.tls.clone()).connect(server, stream).await?;
        self.shake_hands(TokioIo::new(stream)).await
    }

    async fn shake_hands<I>(&self, io: I) -> io::Result<Connection>
    where
        I: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        match self.protocol {
            Protocol::Http => {
                let (sender, driver) = http1::handshake(io).await.map_err(io::Error::other)?;
                self.tasks.spawn(driver);
                Ok(Connection::One(sender))
            }
            Protocol::Grpc => {
                let owner = Owner(self.tasks.clone());
                let mut builder = http2::Builder::new(owner);
                builder.timer(TokioTimer::new());
                let (sender, driver) = builder.handshake(io).await.map_err(io::Error::other)?;
                self.tasks.spawn(driver);
                Ok(Connection::Two(sender))
            }
        }
    }
}

impl Connection {
    fn is_usable(&self) -> bool {
        match self {
            Connection::One(sender) => !sender.is_closed(),
            Connection::Two(sender) => !sender.is_closed(),
        }
    }
}

/// Every task of a connection belongs to its transport.
#[derive(Clone)]
struct Owner(TaskTracker);

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for Owner {
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

/// What an answer means, by the OTLP specification.
async fn answer(protocol: Protocol, response: Response<Incoming>) -> Result<Partial, Refusal> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_LIMIT).collect().await;
    let body = body.map_err(|error| Refusal::later(format!("the answer could not be read: {error}")))?;
    let trailers = body.trailers().cloned().unwrap_or_default();
    let body = body.to_bytes();
    if protocol == Protocol::Grpc && head.status.is_success() {
        // An answer without a message has its status in front.
        let status = if trailers.contains_key(GRPC_STATUS) { &trailers } else { &head.headers };
        return match grpc_refusal(status) {
            Some(refusal) => Err(refusal),
            None => Ok(answer::partial_success(body.get(5..).unwrap_or_default())),
        };
    }
    if head.status.is_success() {
        return Ok(answer::partial_success(&body));
    }
    let excerpt = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
    let retry = match head.status.as_u16() {
        429 | 502 | 503 | 504 => asked(&head.headers).map_or(Retry::Later, Retry::After),
        _ => Retry::Never,
    };
    Err(Refusal { why: format!("answered {}: {excerpt}", head.status), retry })
}

const GRPC_STATUS: &str = "grpc-status";
const GRPC_MESSAGE: &str = "grpc-message";

fn grpc_refusal(headers: &HeaderMap) -> Option<Refusal> {
    let text =
        |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let code = text(GRPC_STATUS);
    if code == "0" {
        return None;
    }
    let message = percent_encoding::percent_decode_str(text(GRPC_MESSAGE)).decode_utf8_lossy();
    let retry = match code {
        // Cancelled, too late, exhausted, aborted, out of range, unavailable, data loss; or no status at all.
        "1" | "4" | "8" | "10" | "11" | "14" | "15" | "" => Retry::Later,
        _ => Retry::Never,
    };
    Some(Refusal { why: format!("answered with gRPC status {code}: {message}"), retry })
}

fn asked(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
