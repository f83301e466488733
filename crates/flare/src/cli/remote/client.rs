//! A small HTTP client for the node's own API: a path comes in, JSON or a stream of lines goes out.

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The largest answer that is read; lines of a stream are bounded by it, too.
const MOST: usize = 16 << 20;

/// The way to a node. Each request has a connection of its own.
pub struct Client {
    base: Uri,
    /// The connections, which live as long as this.
    connections: JoinSet<()>,
}

/// Lines of an answer that does not end.
pub struct Lines {
    body: Incoming,
    read: Vec<u8>,
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
        Client { base, connections: JoinSet::new() }
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
        let response = self.send(Method::GET, path, None).await?;
        if !response.status().is_success() {
            return Err(refused(&Method::GET, path, response).await);
        }
        Ok(Lines { body: response.into_body(), read: Vec::new() })
    }

    async fn json(&mut self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let response = self.send(method.clone(), path, body).await?;
        if !response.status().is_success() {
            return Err(refused(&method, path, response).await);
        }
        let bytes = read(response).await?;
        serde_json::from_slice(&bytes).with_context(|| format!("{method} {path}: the answer is not JSON"))
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Response<Incoming>> {
        let base = &self.base;
        let answer = async {
            let https = base.scheme_str() == Some("https");
            let host = base.host().unwrap_or_default();
            let port = base.port_u16().unwrap_or(if https { 443 } else { 80 });
            let name = host.trim_start_matches('[').trim_end_matches(']');
            let stream = TcpStream::connect((name, port)).await?;
            let mut sender = if https {
                let connector = tokio_rustls::TlsConnector::from(crate::node::tls()?);
                let tls = connector.connect(ServerName::try_from(name.to_owned())?, stream).await?;
                let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(tls)).await?;
                // How a connection ends shows in the answer.
                self.connections.spawn(async { drop(connection.await) });
                sender
            } else {
                let (sender, connection) =
                    hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
                self.connections.spawn(async { drop(connection.await) });
                sender
            };
            let authority = base.authority().map_or("", |authority| authority.as_str());
            let prefix = base.path().trim_end_matches('/');
            let request = Request::builder().method(method).uri(format!("{prefix}{path}"));
            let request = request.header(HOST, authority).header(CONTENT_TYPE, "application/json");
            let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
            anyhow::Ok(sender.send_request(request.body(Full::new(body))?).await?)
        };
        answer.await.with_context(|| format!("reaching Flare at {base} (is it running? --url says where)"))
    }
}

impl Lines {
    /// The next line that is not blank; nothing at the end.
    pub async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            while let Some(at) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=at).collect();
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(serde_json::from_slice(&line).context("a line is not JSON")?));
                }
            }
            if self.read.len() > MOST {
                bail!("a line is longer than {MOST} bytes");
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            if let Ok(data) = frame.context("the stream broke")?.into_data() {
                self.read.extend_from_slice(&data);
            }
        }
    }
}

async fn read(response: Response<Incoming>) -> anyhow::Result<Bytes> {
    let body = Limited::new(response.into_body(), MOST).collect().await;
    Ok(body.map_err(|error| anyhow::anyhow!("the answer could not be read: {error}"))?.to_bytes())
}

/// What the node says of a request that it did not take.
async fn refused(method: &Method, path: &str, response: Response<Incoming>) -> anyhow::Error {
    let status = response.status();
    let body = read(response).await.unwrap_or_default();
    let detail = serde_json::from_slice::<Value>(&body).ok();
    let detail = detail.and_then(|body| body["error"]["detail"].as_str().map(str::to_owned));
    anyhow::anyhow!("{method} {path}: {status}: {}", detail.unwrap_or_else(|| "no further word".into()))
}
