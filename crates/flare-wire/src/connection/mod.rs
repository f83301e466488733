//! One connection: a request comes in, the answer goes out, and whether another request may follow. It is driven by the
//! task that uses it.
//!
//! A request and its answer take one write and one read where the socket takes and has all of it, and one wake-up
//! between them: reading is polled *before* writing, which costs no system call while nothing has arrived (after a
//! read that did not fill the buffer tokio knows that there is nothing), shows an end that came while the connection
//! was idle before anything is written, and leaves the task waiting for the answer.

mod exchange;
mod incoming;

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use crate::answer::reading::Reading;
use crate::answer::{Answer, Mistake, ReadLimits};
use crate::request::{Request, Room};
use crate::stream::Stream;
use exchange::{Exchange, Outgoing};
use incoming::Incoming;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// It could not be written.
    #[error("writing the request failed: {0}")]
    Write(#[source] io::Error),
    /// It could not be read.
    #[error("reading the answer failed: {0}")]
    Read(#[source] io::Error),
    /// The connection had ended, or failed, or said something that nobody asked for; nothing was written.
    #[error("the connection had ended before the request")]
    Spent,
    /// What came was no answer, or not a whole one.
    #[error(transparent)]
    Answer(#[from] Mistake),
}

impl Broken {
    /// Whether it looks as if the other side closed the connection without a word, as it may between two requests: no
    /// failure of the request, if the connection was used before.
    pub fn closed_silently(&self) -> bool {
        match self {
            Broken::Spent | Broken::Answer(Mistake::EndedInHead) => true,
            Broken::Write(error) | Broken::Read(error) => {
                matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
            }
            Broken::Answer(_) => false,
        }
    }
}

/// A connection and what it keeps from one request to the next.
pub struct Connection<S> {
    stream: S,
    incoming: Incoming,
    /// The room of the last request.
    room: Room,
    /// The room of an answer that is done with.
    spare: Answer,
    uses: u64,
    /// Whether another request may follow: not while one is open, so that one that was given up midway leaves nothing
    /// behind that could be taken for the next one's answer.
    open: bool,
}

impl<S: Stream> Connection<S> {
    /// A connection over a stream that has just been opened.
    pub fn new(stream: S) -> Connection<S> {
        Connection {
            stream,
            incoming: Incoming::default(),
            room: Room::default(),
            spare: Answer::default(),
            uses: 0,
            open: true,
        }
    }

    /// Bytes written so far: whether a failed request may have reached the other side.
    pub fn written(&self) -> u64 {
        self.stream.written()
    }

    /// Requests answered on it so far.
    pub fn uses(&self) -> u64 {
        self.uses
    }

    /// Room for the next request, see [`Request::new`].
    pub fn take_room(&mut self) -> Room {
        std::mem::take(&mut self.room)
    }

    /// An answer is done with; the next one is read into its room.
    pub fn give_room(&mut self, answer: Answer) {
        self.spare = answer;
        self.spare.clear();
    }

    /// Sends a request and reads the answer; `head` is called with its status when its head is
    /// there. Returns it and whether another
    /// request may follow; after an error none may. To be given up at any time by dropping it, after which none may
    /// follow either.
    pub async fn exchange(
        &mut self,
        request: Request,
        limits: ReadLimits,
        head: impl FnOnce(u16),
    ) -> Result<(Answer, bool), Broken> {
        if !std::mem::replace(&mut self.open, false) {
            return Err(Broken::Spent);
        }
        let mut head = Some(head);
        let mut exchange = Exchange {
            stream: &mut self.stream,
            incoming: &mut self.incoming,
            outgoing: Outgoing::new(request),
            reading: Reading::new(std::mem::take(&mut self.spare), limits),
            unwritten: None,
        };
        let reusable = poll_fn(|cx| {
            let polled = exchange.poll(cx);
            if let Some(status) = exchange.reading.status()
                && let Some(head) = head.take()
            {
                head(status);
            }
            polled
        })
        .await?;
        let Exchange { outgoing, reading, .. } = exchange;
        self.room = outgoing.into_room();
        self.room.shrink();
        self.incoming.shrink();
        self.uses += 1;
        self.open = reusable;
        Ok((reading.into_answer(), reusable))
    }

    /// Resolves when the idle connection ends: the other side closes it, or says something that nobody asked for.
    pub async fn closed(&mut self) {
        let Connection { stream, incoming, open, .. } = self;
        poll_fn(|cx| {
            if *open && incoming.poll_fill(cx, stream).is_ready() {
                *open = false;
            }
            if *open { Poll::Pending } else { Poll::Ready(()) }
        })
        .await
    }
}
