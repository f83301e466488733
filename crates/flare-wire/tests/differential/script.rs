//! A stream in memory that plays a server: what it says, in pieces, and how it ends. And a clockless executor that knows
//! when nothing will happen any more.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use flare_wire::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What follows the last answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// The server closes.
    Eof,
    /// The server says no more.
    Open,
    /// The connection is reset.
    Reset,
}

/// The server's part: an answer for each request, each in pieces.
pub struct Script {
    answers: VecDeque<VecDeque<Vec<u8>>>,
    end: End,
    /// What was written since the last answer began.
    request: Vec<u8>,
    written: u64,
    answering: bool,
    rested: bool,
    reader: Option<Waker>,
}

impl Script {
    /// Pieces that are empty are left out.
    pub fn new(answers: impl IntoIterator<Item = Vec<Vec<u8>>>, end: End) -> Script {
        let pieces = |pieces: Vec<Vec<u8>>| pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
        Script {
            answers: answers.into_iter().map(pieces).collect(),
            end,
            request: Vec::new(),
            written: 0,
            answering: false,
            rested: false,
            reader: None,
        }
    }
}

impl Stream for Script {
    fn written(&self) -> u64 {
        self.written
    }
}

impl AsyncRead for Script {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.answering && this.answers.front().is_some_and(VecDeque::is_empty) {
            this.answers.pop_front();
            this.answering = false;
        }
        if this.answers.is_empty() {
            return match this.end {
                End::Eof => Poll::Ready(Ok(())),
                End::Reset => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                End::Open => Poll::Pending,
            };
        }
        if !this.answering {
            if !this.request.ends_with(b"\r\n\r\n") {
                this.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            this.request.clear();
            this.answering = true;
        }
        // Between two pieces the reader has to come back.
        this.rested = !this.rested;
        if this.rested {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let pieces = this.answers.front_mut().expect("there is one to give");
        if let Some(mut piece) = pieces.pop_front() {
            let rest = piece.split_off(piece.len().min(buf.remaining()));
            buf.put_slice(&piece);
            if !rest.is_empty() {
                pieces.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.request.extend_from_slice(buf);
        this.written += buf.len() as u64;
        if let Some(reader) = this.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs a future for as long as it is woken. `None` means that it waits for something that will never be.
pub fn run<T>(future: impl Future<Output = T>) -> Option<T> {
    let bell = Arc::new(Bell(AtomicBool::new(true)));
    let waker = Waker::from(bell.clone());
    let mut future = pin!(future);
    while bell.0.swap(false, Ordering::SeqCst) {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(value);
        }
    }
    None
}
