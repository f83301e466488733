//! In: the requests and answers of a connection, as they pass. Out: whose turn it is, so that a node that stops knows
//! whom it would wait for.
//!
//! Nearly all of it happens inside the connection's own task, whenever that is polled: whoever polls it may look
//! afterwards. Only a body may be read by another task, so whoever waits for the end of the handling asks to be woken.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use hyper::body::{Body, Frame, SizeHint};

/// Who has to do something next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turn {
    /// The client: a head, or the next part of a body, has not come.
    Sending,
    /// Flare: what has come is being handled.
    Handling,
    /// The client: an answer, or a part of one, is there for it.
    Reading,
}

/// Whose turn it is on one connection.
#[derive(Debug)]
pub struct Turns {
    turn: AtomicU8,
    /// How often it has passed.
    passed: AtomicU64,
    closed: AtomicBool,
    /// Who waits for the turn to be the client's, once it is closed.
    waiting: AtomicWaker,
}

impl Turns {
    /// A connection from which nothing has come.
    pub fn new() -> Arc<Turns> {
        Arc::new(Turns {
            turn: AtomicU8::new(Turn::Sending as u8),
            passed: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            waiting: AtomicWaker::new(),
        })
    }

    /// From now on it is theirs.
    pub fn pass_to(&self, turn: Turn) {
        // In one order with `close`: either that sees this turn, or this sees that it is closed.
        self.turn.store(turn as u8, Ordering::SeqCst);
        self.passed.fetch_add(1, Ordering::Relaxed);
        if turn != Turn::Handling && self.closed.load(Ordering::SeqCst) {
            self.waiting.wake();
        }
    }

    /// Takes nothing more from the client: whoever asks for more of a body gets nothing, for ever, and it is the client's
    /// turn. Answers whose it is; when it becomes the client's, `context` is woken.
    pub fn close(&self, context: &Context<'_>) -> Turn {
        self.waiting.register(context.waker());
        self.closed.store(true, Ordering::SeqCst);
        self.now().0
    }

    /// Whose turn it is, and how often it has passed.
    pub fn now(&self) -> (Turn, u64) {
        const ALL: [Turn; 3] = [Turn::Sending, Turn::Handling, Turn::Reading];
        (ALL[usize::from(self.turn.load(Ordering::SeqCst))], self.passed.load(Ordering::Relaxed))
    }
}

/// The body of a request. Whoever waits for more of it waits for the client.
pub struct RequestBody<B> {
    body: B,
    turns: Arc<Turns>,
}

impl<B> RequestBody<B> {
    /// A body that comes over a connection.
    pub fn new(body: B, turns: Arc<Turns>) -> RequestBody<B> {
        RequestBody { body, turns }
    }
}

impl<B: Body + Unpin> Body for RequestBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = match self.turns.closed.load(Ordering::Relaxed) {
            true => Poll::Pending,
            false => Pin::new(&mut self.body).poll_frame(context),
        };
        self.turns.pass_to(if polled.is_pending() { Turn::Sending } else { Turn::Handling });
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer. It is asked for more once the client has taken what came before, or nearly so.
pub struct AnswerBody {
    body: axum::body::Body,
    turns: Arc<Turns>,
}

impl AnswerBody {
    /// A body that goes over a connection.
    pub fn new(body: axum::body::Body, turns: Arc<Turns>) -> AnswerBody {
        AnswerBody { body, turns }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // An answer that is made of the request as that comes says itself when it waits for more of it.
        self.turns.pass_to(Turn::Handling);
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() {
            self.turns.pass_to(Turn::Reading);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::task::noop_waker;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Wake, Waker};

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn once_it_is_closed_a_body_that_another_task_reads_gives_nothing_and_wakes_who_waits() {
        let (turns, woken) = (Turns::new(), Arc::new(Woken::default()));
        turns.pass_to(Turn::Handling);
        let waker = Waker::from(woken.clone());
        assert_eq!(turns.close(&Context::from_waker(&waker)), Turn::Handling);
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        let mut body = RequestBody::new(axum::body::Body::from("more"), turns.clone());
        assert!(Pin::new(&mut body).poll_frame(&mut Context::from_waker(&noop_waker())).is_pending());
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert_eq!(turns.close(&Context::from_waker(&waker)), Turn::Sending);
    }
}
