//! One request and its answer, as a thing to poll. Reading and writing go on side by side: an answer may come before the
//! request is through (a 413 to a large body), and is worth more than the failure to write the rest.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::AsyncWrite;

use crate::answer::Mistake;
use crate::answer::reading::{Progress, Reading};
use crate::connection::Broken;
use crate::connection::incoming::Incoming;
use crate::request::{Request, Room};
use crate::stream::Stream;

pub(super) struct Exchange<'c, S> {
    pub stream: &'c mut S,
    pub incoming: &'c mut Incoming,
    pub outgoing: Outgoing,
    pub reading: Reading,
    /// Why the request could not be written to its end, while an answer may still be on its way to us.
    pub unwritten: Option<io::Error>,
}

impl<S: Stream> Exchange<'_, S> {
    /// Ready with an answer, and whether another request may follow, or with the reason why there is none.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Broken>> {
        loop {
            if let Poll::Ready(outcome) = self.poll_answer(cx) {
                return Poll::Ready(outcome.map_err(|broken| self.blame(broken)));
            }
            // From here on the task is waiting for the answer.
            if self.unwritten.is_some() || self.outgoing.is_through() {
                return Poll::Pending;
            }
            match ready!(self.outgoing.poll(cx, self.stream)) {
                Ok(()) => return Poll::Pending,
                // A broken stream ends for reading as well, after what is left in it: so this waits for no long time,
                // and what it waits for may be the reason. It has to wait: what has arrived may be unknown here yet.
                Err(error) => self.unwritten = Some(error),
            }
        }
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Broken>> {
        loop {
            let came = ready!(self.incoming.poll_fill(cx, self.stream));
            if self.outgoing.sent == 0 {
                return Poll::Ready(Err(Broken::Spent));
            }
            let came = match came {
                Ok(came) => came,
                // TLS that ends without saying so: between two requests that is an end like any other.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !self.reading.has_head() => 0,
                Err(error) => return Poll::Ready(Err(Broken::Read(error))),
            };
            if came == 0 {
                self.reading.end(self.incoming.bytes())?;
                return Poll::Ready(Ok(false));
            }
            let (taken, progress) = self.reading.take(self.incoming.bytes())?;
            self.incoming.consume(taken);
            if let Progress::Whole { reusable } = progress {
                let nothing_more = self.incoming.bytes().is_empty();
                return Poll::Ready(Ok(reusable && nothing_more && self.outgoing.is_through()));
            }
        }
    }

    /// Where writing failed first, an answer that then did not come is no second reason.
    fn blame(&mut self, broken: Broken) -> Broken {
        match (self.unwritten.take(), broken) {
            (Some(error), Broken::Read(_) | Broken::Answer(Mistake::EndedInHead)) => Broken::Write(error),
            (_, broken) => broken,
        }
    }
}

/// A request on its way out.
pub(super) struct Outgoing {
    /// The head, and a small body behind it.
    first: Room,
    /// A large body.
    second: Bytes,
    /// How much of both went to the stream.
    sent: usize,
    /// Whether a stream that holds bytes back has let go of them.
    flushed: bool,
}

impl Outgoing {
    pub fn new(request: Request) -> Outgoing {
        let (first, second) = request.finish();
        Outgoing { first, second, sent: 0, flushed: false }
    }

    pub fn into_room(self) -> Room {
        self.first
    }

    fn is_through(&self) -> bool {
        self.flushed
    }

    fn poll(&mut self, cx: &mut Context<'_>, stream: &mut (impl AsyncWrite + Unpin)) -> Poll<io::Result<()>> {
        let first = self.first.bytes();
        let whole = first.len() + self.second.len();
        while self.sent < whole {
            let stream = Pin::new(&mut *stream);
            let wrote = match self.sent.checked_sub(first.len()) {
                Some(sent) => ready!(stream.poll_write(cx, &self.second[sent..]))?,
                None if self.second.is_empty() => ready!(stream.poll_write(cx, &first[self.sent..]))?,
                None => {
                    let parts = [IoSlice::new(&first[self.sent..]), IoSlice::new(&self.second)];
                    ready!(stream.poll_write_vectored(cx, &parts))?
                }
            };
            if wrote == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += wrote;
        }
        ready!(Pin::new(stream).poll_flush(cx))?;
        self.flushed = true;
        Poll::Ready(Ok(()))
    }
}
