//! A small HTTP client for the node's own API: a path comes in, JSON or a stream of lines goes out.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use flare_core::config::CertificateFile;
use flare_model::duration::HumanDuration;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::rustls::pki_types::ServerName;

/// The largest answer that is read; lines of a stream are bounded by it, too.
const MOST: usize = 16 << 20;

/// A stream of lines that is quiet has an empty one after so long: see `GET /tail`.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The way to a node. A connection is used again where its last answer was read to the end.
pub struct Client {
    base: Uri,
    /// The connections, which live as long as this.
    connections: JoinSet<()>,
    idle: Option<SendRequest<Full<Bytes>>>,
    /// How long an answer may take; without it, for ever.
    timeout: Option<Duration>,
    /// Who vouches for the node, in place of the public authorities.
    authorities: CertificateFile,
    /// Who asks: a token, and for the operator an account.
    token: Option<String>,
    account: Option<String>,
}

/// A whole answer, whatever its status.
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// Lines of an answer that does not end.
pub struct Lines {
    body: Incoming,
    /// What came and is no line yet. Bound: [`MOST`], and what one read brought. When full: the stream ends as a failure.
    read: Vec<u8>,
    /// How much of it was searched for the end of a line.
    searched: usize,
    /// How long it may be silent.
    silence: Option<Duration>,
}

/// Reads the url of an API.
pub fn parse_url(text: &str) -> Result<Uri, String> {
    let url: Uri = text.parse().map_err(|error| format!("no url: {error}"))?;
    match (url.scheme_str(), url.host(), url.query()) {
        (Some("http" | "https"), Some(_), None) => Ok(url),
        _ => Err("it should look like http://127.0.0.1:8080".to_owned()),
    }
}

impl Client {
    /// For the API at a url that [`parse_url`] has read.
    pub fn new(base: Uri) -> Client {
        Client {
            base,
            connections: JoinSet::new(),
            idle: None,
            timeout: None,
            authorities: CertificateFile::none(),
            token: None,
            account: None,
        }
    }

    /// The same, that believes a node which these authorities vouch for, and no others.
    pub fn trusting(self, authorities: CertificateFile) -> Client {
        Client { authorities, ..self }
    }

    /// The same, that gives up on an answer which takes longer.
    pub fn giving_up_after(self, timeout: Duration) -> Client {
        Client { timeout: Some(timeout), ..self }
    }

    /// The same, that says who asks.
    pub fn known_as(self, token: Option<String>, account: Option<String>) -> Client {
        Client { token, account, ..self }
    }

    /// GET, and the answer as JSON.
    pub async fn get(&mut self, path: &str) -> anyhow::Result<Value> {
        self.json(Method::GET, path, None).await
    }

    /// POST, and the answer as JSON.
    pub async fn post(&mut self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.json(Method::POST, path, Some(body)).await
    }

    /// GET, and the answer line by line.
    pub async fn lines(&mut self, path: &str) -> anyhow::Result<Lines> {
        let timeout = self.timeout;
        let (_, response) = within(timeout, self.send(&Method::GET, path, None)).await?;
        if !response.status().is_success() {
            let status = response.status();
            let body = within(timeout, read(response)).await.unwrap_or_default();
            return Err(refused(&Method::GET, path, status, &body));
        }
        let silence = timeout.map(|timeout| timeout.saturating_add(HEARTBEAT));
        Ok(Lines { body: response.into_body(), read: Vec::new(), searched: 0, silence })
    }

    async fn json(&mut self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let answer = self.ask(&method, path, body).await?;
        if !answer.status.is_success() {
            return Err(refused(&method, path, answer.status, &answer.body));
        }
        serde_json::from_slice(&answer.body)
            .with_context(|| format!("{method} {path}: the answer is not JSON"))
    }

    /// Any request, and its whole answer.
    pub async fn ask(&mut self, method: &Method, path: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
        let timeout = self.timeout;
        let asked = async {
            let (sender, response) = self.send(method, path, body).await?;
            let (status, headers) = (response.status(), response.headers().clone());
            let body = read(response).await?;
            self.idle = Some(sender);
            Ok(Answer { status, headers, body })
        };
        within(timeout, asked).await.with_context(|| format!("{method} {path}"))
    }

    async fn send(
        &mut self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<(SendRequest<Full<Bytes>>, Response<Incoming>)> {
        let (base, token, account) = (self.base.clone(), self.token.clone(), self.account.clone());
        let answer = async {
            let mut sender = self.connection().await?;
            let authority = base.authority().map_or("", |authority| authority.as_str());
            let prefix = base.path().trim_end_matches('/');
            let request = Request::builder().method(method).uri(format!("{prefix}{path}"));
            let mut request = request.header(HOST, authority).header(CONTENT_TYPE, "application/json");
            if let Some(token) = token {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            if let Some(account) = account {
                request = request.header("flare-account", account);
            }
            let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
            let response = sender.send_request(request.body(Full::new(body))?).await?;
            anyhow::Ok((sender, response))
        };
        answer.await.with_context(|| format!("reaching Flare at {base} (is it running? --url says where)"))
    }

    /// The connection that is idle, if the node has not closed it, or a new one.
    async fn connection(&mut self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        if let Some(mut idle) = self.idle.take()
            && idle.ready().await.is_ok()
        {
            return Ok(idle);
        }
        // Those that have ended.
        while self.connections.try_join_next().is_some() {}
        let https = self.base.scheme_str() == Some("https");
        let host = self.base.host().unwrap_or_default();
        let port = self.base.port_u16().unwrap_or(if https { 443 } else { 80 });
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((name, port)).await?;
        if https {
            let connector = tokio_rustls::TlsConnector::from(flare_core::tls::client_trusting(
                &self.authorities,
                "--ca",
            )?);
            let tls = connector.connect(ServerName::try_from(name.to_owned())?, stream).await?;
            let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(tls)).await?;
            // How a connection ends shows in the answer.
            self.connections.spawn(async { drop(connection.await) });
            Ok(sender)
        } else {
            stream.set_nodelay(true)?;
            let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            self.connections.spawn(async { drop(connection.await) });
            Ok(sender)
        }
    }
}

impl Lines {
    /// The next line that is not blank; nothing at the end.
    pub async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            while let Some(at) = self.read[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=self.searched + at).collect();
                self.searched = 0;
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(serde_json::from_slice(&line).context("a line is not JSON")?));
                }
            }
            self.searched = self.read.len();
            if self.read.len() > MOST {
                bail!("a line is longer than {MOST} bytes");
            }
            let frame = async { Ok(self.body.frame().await) };
            let Some(frame) = within(self.silence, frame).await? else { return Ok(None) };
            if let Ok(data) = frame.context("the stream broke")?.into_data() {
                self.read.extend_from_slice(&data);
            }
        }
    }
}

/// What is awaited, or a failure that says how long it was.
async fn within<T>(
    timeout: Option<Duration>,
    awaited: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let Some(timeout) = timeout else { return awaited.await };
    tokio::time::timeout(timeout, awaited).await.unwrap_or_else(|_| {
        let timeout = HumanDuration(timeout);
        Err(anyhow::anyhow!("the node said nothing for {timeout}: it hangs, or needs more time (--timeout)"))
    })
}

async fn read(response: Response<Incoming>) -> anyhow::Result<Bytes> {
    let body = Limited::new(response.into_body(), MOST).collect().await;
    Ok(body.map_err(|error| anyhow::anyhow!("the answer could not be read: {error}"))?.to_bytes())
}

/// What the node says of a request that it did not take.
pub fn refused(method: &Method, path: &str, status: StatusCode, body: &[u8]) -> anyhow::Error {
    let detail = serde_json::from_slice::<Value>(body).ok();
    let detail = detail.and_then(|body| body["error"]["detail"].as_str().map(str::to_owned));
    anyhow::anyhow!("{method} {path}: {status}: {}", detail.unwrap_or_else(|| "no further word".into()))
}
