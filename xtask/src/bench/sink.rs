//! The client of every subscription: takes notifications, counts them, and times them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

use super::http::{find, length};
use super::tls::Identity;

pub struct Sink {
    pub address: String,
    /// What it shows to whoever speaks TLS to it.
    pub identity: Option<Identity>,
    seen: Arc<Mutex<Seen>>,
    /// Its thread ends when this is dropped.
    _closing: tokio::sync::oneshot::Sender<()>,
}

#[derive(Default)]
pub struct Seen {
    newest: HashMap<(String, u64), u64>,
    pub unique: u64,
    pub duplicates: u64,
    pub out_of_order: u64,
    pub last: Duration,
    latencies: Vec<Duration>,
}

impl Seen {
    fn take(&mut self, path: &str, body: &[u8]) {
        let now = now();
        let number = |name: &[u8]| -> u64 {
            let Some(at) = find(body, name) else { return 0 };
            let digits = body[at + name.len()..].iter().take_while(|byte| byte.is_ascii_digit());
            digits.fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
        };
        let (document, revision, sent) =
            (number(b"\"docId\":"), number(b"\"rev\":"), number(b"\"sentAtNs\":"));
        let newest = self.newest.entry((path.to_owned(), document)).or_default();
        match revision.cmp(newest) {
            std::cmp::Ordering::Greater => {
                *newest = revision;
                self.unique += 1;
            }
            std::cmp::Ordering::Equal => self.duplicates += 1,
            std::cmp::Ordering::Less => self.out_of_order += 1,
        }
        self.last = now;
        self.latencies.push(now.saturating_sub(Duration::from_nanos(sent)));
    }

    /// How many documents of how many clients are at least at a revision.
    pub fn at_least(&self, revision: u64) -> u64 {
        self.newest.values().filter(|newest| **newest >= revision).count() as u64
    }

    pub fn percentile(&mut self, share: f64) -> Duration {
        self.latencies.sort();
        let at = ((self.latencies.len() as f64 * share).ceil() as usize).saturating_sub(1);
        self.latencies.get(at).copied().unwrap_or_default()
    }
}

/// Since the epoch, as documents carry it.
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl Sink {
    /// Starts it on a thread of its own: what it costs is the same whoever sends. It ends with this process.
    pub fn start(identity: Option<Identity>) -> anyhow::Result<Sink> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let acceptor = identity.as_ref().map(Identity::acceptor);
        let address = listener.local_addr()?.to_string();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let counting = seen.clone();
        let (closing, closed) = tokio::sync::oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = take_connections(listener, acceptor, counting) => {}
                    _ = closed => {}
                }
            });
        });
        Ok(Sink { address, identity, seen, _closing: closing })
    }

    /// Where clients are.
    pub fn base(&self) -> String {
        let scheme = if self.identity.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    pub fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().expect("the sink does not panic"))
    }
}

async fn take_connections(
    listener: std::net::TcpListener,
    acceptor: Option<tokio_rustls::TlsAcceptor>,
    seen: Arc<Mutex<Seen>>,
) -> anyhow::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        match &acceptor {
            None => tokio::spawn(serve(stream, seen.clone())),
            Some(acceptor) => tokio::spawn(serve_tls(acceptor.accept(stream), seen.clone())),
        };
    }
    Ok(())
}

async fn serve_tls(accepting: tokio_rustls::Accept<tokio::net::TcpStream>, seen: Arc<Mutex<Seen>>) {
    if let Ok(stream) = accepting.await {
        serve(stream, seen).await;
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, seen: Arc<Mutex<Seen>>) {
    let mut buffer = Vec::with_capacity(8192);
    loop {
        while let Some(head) = find(&buffer, b"\r\n\r\n") {
            let Ok(text) = std::str::from_utf8(&buffer[..head]) else { return };
            let end = head + 4 + length(text).unwrap_or(0);
            if buffer.len() < end {
                break;
            }
            let path =
                text.split(' ').nth(1).unwrap_or("/").rsplit_once('/').map_or("", |(client, _)| client);
            seen.lock().expect("the sink does not panic").take(path, &buffer[head + 4..end]);
            buffer.drain(..end);
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.is_err() {
                return;
            }
        }
        match stream.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}
