//! One HTTP/1.1 connection to a client, driven by the task that uses it: no hand-over between tasks for a
//! request, and one write per request where the socket takes it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{HeaderMap, Request};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::network::Destinations;
use crate::notification::ending::Answer;
use crate::notification::host::HostKey;

/// Why there is no usable answer.
#[derive(Debug)]
pub enum Broken {
    /// The name did not resolve.
    Resolve(io::Error),
    /// The address is one that Flare does not talk to.
    Forbidden(String),
    /// No connection.
    Connect(io::Error),
    /// No TLS.
    Tls(io::Error),
    /// The connection broke, or what came was not HTTP.
    Http(hyper::Error),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Resolve(e) => write!(f, "the host name did not resolve: {e}"),
            Broken::Forbidden(why) => write!(f, "the destination is refused: {why}"),
            Broken::Connect(e) => write!(f, "could not connect: {e}"),
            Broken::Tls(e) => write!(f, "TLS failed: {e}"),
            Broken::Http(e) => {
                write!(f, "the connection broke or the answer was not HTTP: {e}")?;
                match std::error::Error::source(e) {
                    Some(cause) => write!(f, ": {cause}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// How much of an answer is read, and how much of it kept.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// Beyond this the connection is closed instead of being used again.
    pub read: usize,
    /// Kept for people to look at.
    pub keep: usize,
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
    },
    /// Without a network: in a simulation, whose clients are in the same process.
    Handed(Arc<dyn Hands>),
}

/// Opens connections without a network.
pub trait Hands: Send + Sync {
    /// A connection to this host, or why there is none.
    fn open(&self, host: &HostKey) -> LocalBoxFuture<'static, io::Result<Box<dyn Pipe>>>;
}

/// What a handed connection is written to and read from.
pub trait Pipe: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Pipe for T {}

/// How many headers the room that a connection keeps may have.
const MOST_ROOM: usize = 64;

type Driver = http1::Connection<Counted, Full<Bytes>>;

/// A connection and its protocol.
pub struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: Option<Pin<Box<Driver>>>,
    written: Rc<Cell<u64>>,
    /// Requests answered on it so far.
    pub uses: u64,
    /// The room of the last answer's headers, for the next request's: empty.
    room: HeaderMap,
}

impl Dialler {
    /// Connects. The address that is checked is the address that is dialled.
    pub async fn dial(&self, host: &HostKey) -> Result<Connection, Broken> {
        let stream = match self {
            Dialler::Tcp { destinations, tls } => Self::over_tcp(host, destinations, tls).await?,
            Dialler::Handed(hands) => {
                Stream::Handed(TokioIo::new(hands.open(host).await.map_err(Broken::Connect)?))
            }
        };
        let written = Rc::new(Cell::new(0));
        let io = Counted { stream, written: written.clone() };
        let (sender, driver) =
            http1::Builder::new().max_buf_size(64 * 1024).handshake(io).await.map_err(Broken::Http)?;
        Ok(Connection { sender, driver: Some(Box::pin(driver)), written, uses: 0, room: HeaderMap::new() })
    }

    async fn over_tcp(
        host: &HostKey,
        destinations: &Destinations,
        tls: &Arc<rustls::ClientConfig>,
    ) -> Result<Stream, Broken> {
        let name = host.host.trim_start_matches('[').trim_end_matches(']');
        let addresses: Vec<SocketAddr> =
            tokio::net::lookup_host((name, host.port)).await.map_err(Broken::Resolve)?.collect();
        // One forbidden address among the answers is reason enough: a mixed answer is how rebinding looks.
        for address in &addresses {
            destinations.check(address.ip()).map_err(|why| Broken::Forbidden(why.to_string()))?;
        }
        let stream = TcpStream::connect(&*addresses).await.map_err(Broken::Connect)?;
        let _ = stream.set_nodelay(true);
        Ok(if host.https {
            let server = ServerName::try_from(name.to_owned())
                .map_err(|e| Broken::Tls(io::Error::new(io::ErrorKind::InvalidInput, e)))?;
            let tls = TlsConnector::from(tls.clone()).connect(server, stream).await;
            Stream::Tls(Box::new(TokioIo::new(tls.map_err(Broken::Tls)?)))
        } else {
            Stream::Plain(TokioIo::new(stream))
        })
    }
}

impl Connection {
    /// Bytes written so far: whether a failed request may have reached the client.
    pub fn written(&self) -> u64 {
        self.written.get()
    }

    /// Room for the headers of the next request.
    pub fn take_room(&mut self) -> HeaderMap {
        std::mem::take(&mut self.room)
    }

    /// The headers of an answer are done with; the protocol made them in the room of the request's.
    pub fn give_room(&mut self, mut headers: HeaderMap) {
        // One that a client filled with hundreds is not kept for the life of the connection.
        if headers.capacity() <= MOST_ROOM {
            headers.clear();
            self.room = headers;
        }
    }

    /// Sends a request and reads the answer; `head` is called when its head is there. After an error, or when
    /// this returns `false`, the connection is not to be used again.
    pub async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        limits: ReadLimits,
        head: impl FnOnce(),
    ) -> Result<(Answer, bool), Broken> {
        let Connection { sender, driver, .. } = self;
        poll_fn(|cx| {
            drive(driver, cx);
            sender.poll_ready(cx)
        })
        .await
        .map_err(Broken::Http)?;
        let response = {
            let mut response = pin!(sender.send_request(request));
            poll_fn(|cx| {
                drive(driver, cx);
                response.as_mut().poll(cx)
            })
            .await
            .map_err(Broken::Http)?
        };
        head();
        let (head, mut body) = response.into_parts();
        let status = head.status.as_u16();
        let mut answer = Answer { status, headers: head.headers, excerpt: Vec::new(), second: false };
        let drained = Self::read(driver, &mut body, &mut answer.excerpt, limits).await?;
        self.uses += 1;
        Ok((answer, drained && self.driver.is_some()))
    }

    async fn read(
        driver: &mut Option<Pin<Box<Driver>>>,
        body: &mut Incoming,
        excerpt: &mut Vec<u8>,
        limits: ReadLimits,
    ) -> Result<bool, Broken> {
        let mut read = 0;
        while !body.is_end_stream() {
            let frame = poll_fn(|cx| {
                drive(driver, cx);
                Pin::new(&mut *body).poll_frame(cx)
            });
            let Some(frame) = frame.await else { break };
            if let Ok(data) = frame.map_err(Broken::Http)?.into_data() {
                let room = limits.keep - excerpt.len().min(limits.keep);
                excerpt.extend_from_slice(&data[..data.len().min(room)]);
                read += data.len();
                if read > limits.read {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Resolves when the other side closes the idle connection.
    pub async fn closed(&mut self) {
        let driver = &mut self.driver;
        poll_fn(|cx| {
            drive(driver, cx);
            if driver.is_none() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await
    }
}

/// Lets the protocol do what it can; it is gone once the connection has ended.
fn drive(driver: &mut Option<Pin<Box<Driver>>>, cx: &mut Context<'_>) {
    if let Some(running) = driver
        && running.as_mut().poll(cx).is_ready()
    {
        *driver = None;
    }
}

enum Stream {
    Plain(TokioIo<TcpStream>),
    Tls(Box<TokioIo<tokio_rustls::client::TlsStream<TcpStream>>>),
    Handed(TokioIo<Box<dyn Pipe>>),
}

/// Counts what was written, so that "no byte was written" is known and not guessed.
struct Counted {
    stream: Stream,
    written: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, buf),
            Stream::Handed(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl Write for Counted {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = match &mut this.stream {
            Stream::Plain(stream) => Pin::new(stream.inner_mut()).poll_write(cx, buf),
            Stream::Tls(stream) => Pin::new(stream.inner_mut()).poll_write(cx, buf),
            Stream::Handed(stream) => Pin::new(stream.inner_mut()).poll_write(cx, buf),
        };
        this.count(wrote)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = match &mut this.stream {
            Stream::Plain(stream) => Pin::new(stream.inner_mut()).poll_write_vectored(cx, bufs),
            Stream::Tls(stream) => Pin::new(stream.inner_mut()).poll_write_vectored(cx, bufs),
            Stream::Handed(stream) => Pin::new(stream.inner_mut()).poll_write_vectored(cx, bufs),
        };
        this.count(wrote)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.inner().is_write_vectored(),
            Stream::Tls(stream) => stream.inner().is_write_vectored(),
            Stream::Handed(stream) => stream.inner().is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream.inner_mut()).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream.inner_mut()).poll_flush(cx),
            Stream::Handed(stream) => Pin::new(stream.inner_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Plain(stream) => Pin::new(stream.inner_mut()).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream.inner_mut()).poll_shutdown(cx),
            Stream::Handed(stream) => Pin::new(stream.inner_mut()).poll_shutdown(cx),
        }
    }
}

impl Counted {
    fn count(&self, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &wrote {
            self.written.set(self.written.get() + *bytes as u64);
        }
        wrote
    }
}
