//! One connection to one member, driven by the task that uses it: nothing runs beside it, so nothing is left over when a call is
//! dropped.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    secure: bool,
    host: String,
    port: u16,
}

/// Why a text names no member.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no member of etcd; write http://host:port or https://host:port")]
pub struct NoEndpoint(String);

impl Endpoint {
    pub fn parse(text: &str) -> Result<Endpoint, NoEndpoint> {
        let refused = || NoEndpoint(text.to_owned());
        let (secure, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(refused()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = rest.rsplit_once(':').ok_or_else(refused)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = port.parse().map_err(|_| refused())?;
        if host.is_empty() || host.contains('/') {
            return Err(refused());
        }
        Ok(Endpoint { secure, host: host.to_owned(), port })
    }

    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// As the `host` header has it.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Broken {
    /// Nothing of the request went out.
    Unsent(String),
    /// It may have arrived.
    Unanswered(String),
}

type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: Option<Driver>,
}

impl Connection {
    pub async fn dial(endpoint: &Endpoint, tls: Option<&Arc<ClientConfig>>) -> Result<Connection, Broken> {
        let unsent = |what: &str, error: &dyn std::fmt::Display| {
            Broken::Unsent(format!("{what} {}: {error}", endpoint.authority()))
        };
        let tcp = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await;
        let tcp = tcp.map_err(|error| unsent("connecting to", &error))?;
        tcp.set_nodelay(true).map_err(|error| unsent("connecting to", &error))?;
        if !endpoint.secure {
            return Connection::over(TokioIo::new(tcp))
                .await
                .map_err(|error| unsent("connecting to", &error));
        }
        let tls = tls.ok_or_else(|| unsent("connecting to", &"no authorities are known for https"))?;
        let name = ServerName::try_from(endpoint.host.clone());
        let name = name.map_err(|error| unsent("connecting to", &error))?;
        let stream = TlsConnector::from(tls.clone()).connect(name, tcp).await;
        let stream = stream.map_err(|error| unsent("speaking TLS to", &error))?;
        Connection::over(TokioIo::new(stream)).await.map_err(|error| unsent("connecting to", &error))
    }

    async fn over<S>(stream: S) -> hyper::Result<Connection>
    where
        S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let (sender, connection) = http1::handshake(stream).await?;
        // How it ends is told to whoever waits for an answer.
        let driver: Driver = Box::pin(async { drop(connection.await) });
        Ok(Connection { sender, driver: Some(driver) })
    }

    /// Drives the connection while something is waited for.
    async fn driving<T>(driver: &mut Option<Driver>, what: impl Future<Output = T>) -> T {
        let mut what = std::pin::pin!(what);
        poll_fn(|cx| {
            if let Some(connection) = driver
                && connection.as_mut().poll(cx).is_ready()
            {
                *driver = None;
            }
            what.as_mut().poll(cx)
        })
        .await
    }

    /// Whether the last answer left it as it was.
    pub fn is_usable(&self) -> bool {
        self.driver.is_some() && !self.sender.is_closed()
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<hyper::Response<Incoming>, Broken> {
        let Connection { sender, driver } = self;
        let exchange = async {
            if let Err(error) = sender.ready().await {
                return Err(Broken::Unsent(error.to_string()));
            }
            sender.try_send_request(request).await.map_err(|mut error| {
                let unsent = error.take_message().is_some();
                let words = error.into_error().to_string();
                if unsent { Broken::Unsent(words) } else { Broken::Unanswered(words) }
            })
        };
        Connection::driving(driver, exchange).await
    }

    /// A request and its whole answer.
    pub async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), Broken> {
        let answer = self.send(request).await?;
        let status = answer.status();
        let body = Connection::driving(&mut self.driver, answer.into_body().collect()).await;
        let body = body.map_err(|error| Broken::Unanswered(error.to_string()))?;
        Ok((status, body.to_bytes()))
    }

    /// A request whose answer comes in lines.
    pub async fn stream(mut self, request: Request<Full<Bytes>>) -> Result<Lines, Broken> {
        let answer = self.send(request).await?;
        let status = answer.status();
        let lines = Lines { body: answer.into_body(), connection: self, read: BytesMut::new(), status };
        Ok(lines)
    }
}

/// An answer in lines.
pub struct Lines {
    connection: Connection,
    body: Incoming,
    /// What was read of the next lines. Bound: one message of etcd's.
    read: BytesMut,
    pub status: StatusCode,
}

impl Lines {
    /// The next line; nothing when the answer ends. A call that is dropped loses nothing.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line = self.read.split_to(end + 1).freeze();
                if line.len() > 1 {
                    return Ok(Some(line));
                }
                continue;
            }
            let frame = Connection::driving(&mut self.connection.driver, self.body.frame()).await;
            match frame {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        self.read.extend_from_slice(data);
                    }
                }
                Some(Err(error)) => return Err(Broken::Unanswered(error.to_string())),
                None if self.read.is_empty() => return Ok(None),
                None => return Ok(Some(self.read.split().freeze())),
            }
        }
    }
}
