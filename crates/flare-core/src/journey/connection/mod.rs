//! How a connection to a client is opened. What is said on it is flare-wire's: HTTP/1.1, driven by the task that asks.

mod dialling;
mod line;
mod proxy;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use flare_wire::Counted;
use futures_util::future::LocalBoxFuture;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub use dialling::DialTurn;
pub use flare_wire::ReadLimits;
pub use line::Pipe;

use crate::config::Proxy;
use crate::network::{Destinations, Refused};
use crate::notification::host::HostKey;
use dialling::Dialling;
use line::Line;

/// A connection to a client.
pub type Connection = flare_wire::Connection<Line>;

/// Why there is no usable answer.
#[derive(Debug)]
pub enum Broken {
    /// The name did not resolve.
    Resolve(io::Error),
    /// The address is one that Flare does not talk to. Which rule says so is in the log: it may tell of a network that is not
    /// for whoever subscribes to know.
    Forbidden,
    /// No connection.
    Connect(io::Error),
    /// No way through the proxy.
    Proxy(String),
    /// No TLS.
    Tls(io::Error),
    /// The connection broke, or what came was not HTTP.
    Http(flare_wire::Broken),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Resolve(e) => write!(f, "the host name did not resolve: {e}"),
            Broken::Forbidden => f.write_str("the destination is refused: it is not allowed"),
            Broken::Connect(e) => write!(f, "could not connect: {e}"),
            Broken::Proxy(why) => write!(f, "the proxy (http.client.proxy) did not connect: {why}"),
            Broken::Tls(e) => write!(f, "TLS failed: {e}"),
            Broken::Http(e) => write!(f, "the connection broke or the answer was not HTTP: {e}"),
        }
    }
}

impl Broken {
    /// Whether the other side closed the connection without a word: no failure, if it was used before.
    pub fn closed_silently(&self) -> bool {
        matches!(self, Broken::Http(broken) if broken.closed_silently())
    }
}

impl From<flare_wire::Broken> for Broken {
    fn from(broken: flare_wire::Broken) -> Broken {
        Broken::Http(broken)
    }
}

/// How a connection to a client is opened.
#[derive(Clone)]
pub enum Dialler {
    /// Over TCP.
    Tcp {
        /// Which addresses are allowed.
        destinations: Destinations,
        /// For https.
        tls: Arc<rustls::ClientConfig>,
        /// By way of this one.
        proxy: Option<Arc<Proxy>>,
        /// How many at once.
        dialling: Dialling,
    },
    /// Without a network: in a simulation, whose clients are in the same process.
    Handed(Arc<dyn Hands>),
}

/// Opens connections without a network.
pub trait Hands: Send + Sync {
    /// A connection to this host, or why there is none.
    fn open(&self, host: &HostKey) -> LocalBoxFuture<'static, io::Result<Box<dyn Pipe>>>;
}

impl Dialler {
    /// Over TCP, to these destinations.
    pub fn tcp(destinations: Destinations, tls: Arc<rustls::ClientConfig>) -> Dialler {
        Dialler::Tcp { destinations, tls, proxy: None, dialling: Dialling::default() }
    }

    /// The same by way of a proxy.
    pub fn by_way_of(self, way: Option<&Proxy>) -> Dialler {
        match self {
            Dialler::Tcp { destinations, tls, dialling, .. } => {
                Dialler::Tcp { destinations, tls, proxy: way.cloned().map(Arc::new), dialling }
            }
            handed => handed,
        }
    }

    /// Waits until a connection may be opened: not too many are at once.
    pub async fn turn(&self) -> DialTurn {
        match self {
            Dialler::Tcp { dialling, .. } => dialling.turn().await,
            Dialler::Handed(_) => DialTurn::free(),
        }
    }

    /// Connects. The address that is checked is the address that is dialled.
    pub async fn dial(&self, host: &HostKey) -> Result<Connection, Broken> {
        let line = match self {
            Dialler::Tcp { destinations, tls, proxy, .. } => {
                let stream = match proxy {
                    None => Self::over_tcp(host, destinations).await?,
                    Some(proxy) => proxy::tunnel(proxy, host, destinations).await?,
                };
                Self::agree(host, stream, tls).await?
            }
            Dialler::Handed(hands) => {
                Line::Handed(Counted::new(hands.open(host).await.map_err(Broken::Connect)?))
            }
        };
        Ok(Connection::new(line))
    }

    async fn over_tcp(host: &HostKey, destinations: &Destinations) -> Result<TcpStream, Broken> {
        let name = bare(host);
        let addresses: Vec<SocketAddr> =
            tokio::net::lookup_host((name, host.port)).await.map_err(Broken::Resolve)?.collect();
        // One forbidden address among the answers is reason enough: a mixed answer is how rebinding looks.
        for address in &addresses {
            allowed(host, destinations.check(*address))?;
        }
        let stream = TcpStream::connect(&*addresses).await.map_err(Broken::Connect)?;
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    async fn agree(
        host: &HostKey,
        stream: TcpStream,
        tls: &Arc<rustls::ClientConfig>,
    ) -> Result<Line, Broken> {
        let stream = Counted::new(stream);
        Ok(if host.https {
            let server = ServerName::try_from(bare(host).to_owned())
                .map_err(|e| Broken::Tls(io::Error::new(io::ErrorKind::InvalidInput, e)))?;
            let tls = host.identity.as_ref().map_or_else(|| tls.clone(), |identity| identity.config(tls));
            let tls = TlsConnector::from(tls).connect(server, stream).await;
            Line::Tls(Box::new(tls.map_err(Broken::Tls)?))
        } else {
            Line::Plain(stream)
        })
    }
}

/// A name or address without brackets.
fn bare(host: &HostKey) -> &str {
    host.host.trim_start_matches('[').trim_end_matches(']')
}

/// Whether an address may be dialled. Which rule is against it is for whoever runs Flare to know.
fn allowed(host: &HostKey, checked: Result<(), Refused>) -> Result<(), Broken> {
    checked.map_err(|why| {
        tracing::warn!(host = %host.host, port = host.port, rule = %why, "a destination is not allowed");
        Broken::Forbidden
    })
}
