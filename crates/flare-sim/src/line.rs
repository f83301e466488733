//! The network of a simulation: Flare opens a line to a client and writes HTTP to it; a request that is complete is
//! remembered at that very moment, and reaches its client as an [`Arrival`]; what the client answers is read by Flare from
//! the same line, and that is remembered too. So it is known of every request when it began and what Flare knows of its
//! end.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use flare_core::journey::{Hands, Pipe};
use flare_core::notification::host::HostKey;
use flare_promises::beliefs::Ending;
use flare_promises::told::Told;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use crate::pair::Way;
use crate::stage::Stage;
use crate::together::tenures::Sender;

/// A request that is on its way to a client.
pub struct Arrival {
    pub client: usize,
    pub request: u64,
    pub told: Told,
    /// Where to answer.
    pub line: Arc<Far>,
}

/// Opens lines, for one life of a node.
pub struct Network {
    pub stage: Weak<Stage>,
    pub sender: Sender,
}

impl Hands for Network {
    fn open(&self, host: &HostKey) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Pipe>>>>> {
        let (stage, host, sender) = (self.stage.clone(), host.clone(), self.sender);
        Box::pin(async move {
            let Some(stage) = stage.upgrade() else { return Err(io::ErrorKind::NetworkDown.into()) };
            let (way, refused) = {
                let mut inside = stage.lock();
                let way = Duration::from_millis(inside.dice.below(4));
                (way, inside.dice.percent(5) && !inside.healed)
            };
            tokio::time::sleep(way).await;
            if refused {
                stage.note(|| format!("{host} refuses a connection"));
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            Ok(Box::new(Near { stage, sender, far: Arc::default(), written: Vec::new() }) as Box<dyn Pipe>)
        })
    }
}

/// Flare's end of a line.
struct Near {
    stage: Arc<Stage>,
    sender: Sender,
    far: Arc<Far>,
    /// Of a request that is not complete yet. Bound: a request.
    written: Vec<u8>,
}

/// The client's end of a line.
#[derive(Default)]
pub struct Far {
    wire: Mutex<Wire>,
    /// Rung when Flare has left.
    left: Notify,
}

#[derive(Default)]
struct Wire {
    /// What Flare has not read yet of what the client wrote. Bound: an answer.
    answer: Vec<u8>,
    read: usize,
    /// Flare knows how the request ended once it has read the answer to its end.
    open: Option<(usize, u64, Told)>,
    ending: Option<Ending>,
    closed: Option<Closed>,
    gone: bool,
    waker: Option<Waker>,
}

/// How a client ends a connection.
#[derive(Clone, Copy, Debug)]
pub enum Closed {
    Properly,
    ByReset,
}

impl Far {
    /// The client answers. `ending`: what Flare makes of it once it has read all of it; nothing if it is not a whole
    /// answer. `closed`: and closes.
    pub fn answer(&self, bytes: &[u8], ending: Option<Ending>, closed: Option<Closed>) {
        let mut wire = self.wire.lock();
        wire.answer.extend_from_slice(bytes);
        wire.ending = ending;
        wire.closed = closed;
        if let Some(waker) = wire.waker.take() {
            waker.wake();
        }
    }

    /// Whether Flare has left.
    pub fn is_gone(&self) -> bool {
        self.wire.lock().gone
    }

    /// Waits until Flare has left.
    pub async fn left(&self) {
        while !self.is_gone() {
            self.left.notified().await;
        }
    }
}

impl Near {
    /// Takes a request that is complete, and sends it on its way.
    fn take_request(&mut self) {
        let Some((client, told, length)) = parse(&self.written) else { return };
        self.written.drain(..length);
        let told = match told {
            Ok(told) => told,
            Err(error) => return self.stage.wrong(format!("a request that is none: {error}")),
        };
        let request = self.stage.lock().begins(client, &told, Way::Request, self.sender);
        self.far.wire.lock().open = Some((client, request, told.clone()));
        // Nobody listens only when the simulation is over.
        let _ = self.stage.arrivals.send(Arrival { client, request, told, line: self.far.clone() });
    }

    fn end(&self, ending: Ending) {
        let open = self.far.wire.lock().open.take();
        if let Some((client, request, told)) = open {
            self.stage.lock().ends(client, request, &told, ending, self.sender);
        }
    }
}

impl AsyncWrite for Near {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match this.far.wire.lock().closed {
            Some(Closed::ByReset) => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            Some(Closed::Properly) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            None => {}
        }
        this.written.extend_from_slice(bytes);
        this.take_request();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Near {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let known = {
            let mut wire = this.far.wire.lock();
            let rest = wire.answer.len() - wire.read;
            if rest == 0 {
                match wire.closed {
                    Some(Closed::Properly) => return Poll::Ready(Ok(())),
                    Some(Closed::ByReset) => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                    None => {}
                }
                wire.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            let some = rest.min(into.remaining());
            into.put_slice(&wire.answer[wire.read..wire.read + some]);
            wire.read += some;
            if wire.read == wire.answer.len() {
                wire.answer.clear();
                wire.read = 0;
                wire.ending.take()
            } else {
                None
            }
        };
        if let Some(ending) = known {
            this.end(ending);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Near {
    /// Flare has given up whatever is open, or is gone.
    fn drop(&mut self) {
        self.end(Ending::Failed);
        self.far.wire.lock().gone = true;
        self.far.left.notify_one();
    }
}

/// The first request in some bytes, if it is complete: whose it is, what it tells, and how long it is.
fn parse(bytes: &[u8]) -> Option<(usize, Result<Told, String>, usize)> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&bytes[..head]).ok()?;
    let header = |name: &str| {
        let mut lines = text.lines().skip(1).filter_map(|line| line.split_once(':'));
        let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().to_owned())
    };
    let body = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let end = head + 4 + body;
    if bytes.len() < end {
        return None;
    }
    let client = text.split('/').nth(2).and_then(|number| number.parse().ok())?;
    Some((client, Told::read(header, &bytes[head + 4..end]), end))
}
