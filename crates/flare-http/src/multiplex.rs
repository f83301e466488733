//! Connections of HTTP/2: many requests at once come in over one, and each is answered as if it had one of its own. What the
//! HTTP library does not bound is bounded here: who asks for nothing leaves after a while, and so does who takes nothing of
//! an answer, though the connection itself moves.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use flare_core::config::HttpServerConfig;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio_util::task::TaskTracker;

use super::line::Line;
use super::seats::Seat;
use super::server::Front;
use super::stall::Stalling;
use super::turn::{Turn, Turns};

/// How often a connection is looked at whose requests are handled beyond the grace.
const LOOK: Duration = Duration::from_millis(20);

/// How such connections are served.
pub struct Multiplexed(http2::Builder<Tasks>);

/// Where the tasks of requests run: they end with the server.
#[derive(Clone)]
struct Tasks(TaskTracker);

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

impl Multiplexed {
    /// As configured.
    pub fn new(config: &HttpServerConfig, head_limit: usize, tasks: TaskTracker) -> Multiplexed {
        let mut builder = http2::Builder::new(Tasks(tasks));
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(config.streams)
            .max_header_list_size(u32::try_from(head_limit).unwrap_or(u32::MAX))
            .keep_alive_interval(config.header_timeout)
            .keep_alive_timeout(config.timeout);
        Multiplexed(builder)
    }
}

/// The requests that are under way on a connection.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<Vec<Seen>>>);

/// A request, and how it was when it was last looked at.
struct Seen {
    turns: Weak<Turns>,
    then: Option<(Turn, u64)>,
}

/// What became of the requests since they were last looked at.
#[derive(Debug, PartialEq)]
enum Found {
    Moving,
    /// There are none, and there were none.
    Idle,
    /// Of one, nothing was taken that is ready.
    Stuck,
}

impl Streams {
    fn begin(&self, turns: &Arc<Turns>) {
        self.0.lock().push(Seen { turns: Arc::downgrade(turns), then: None });
    }

    fn look(&self, were_none: &mut bool) -> Found {
        let mut streams = self.0.lock();
        let mut is_stuck = false;
        streams.retain_mut(|seen| {
            let Some(turns) = seen.turns.upgrade() else { return false };
            let now = turns.now();
            is_stuck |= now.0 == Turn::Reading && seen.then == Some(now);
            seen.then = Some(now);
            true
        });
        let was_idle = std::mem::replace(were_none, streams.is_empty());
        match (is_stuck, was_idle && *were_none) {
            (true, _) => Found::Stuck,
            (false, true) => Found::Idle,
            (false, false) => Found::Moving,
        }
    }

    fn is_handling(&self) -> bool {
        let streams = self.0.lock();
        streams.iter().filter_map(|seen| seen.turns.upgrade()).any(|turns| turns.now().0 == Turn::Handling)
    }
}

impl Front {
    /// Serves a connection to its end; nothing when it was cut. One without a request for `patience` is asked to leave.
    pub(super) async fn serve_at_once(
        self: Arc<Self>,
        line: Line,
        peer: SocketAddr,
        seat: &Arc<Seat>,
        patience: Duration,
    ) -> Option<hyper::Result<()>> {
        let streams = Streams::default();
        let service = service_fn({
            let (front, streams, seat) = (self.clone(), streams.clone(), seat.clone());
            move |request| {
                let turns = Turns::new();
                streams.begin(&turns);
                front.answer(request, turns, peer, &seat)
            }
        });
        let stream = Stalling::new(TokioIo::new(line), self.timeout);
        let mut connection = std::pin::pin!(self.multiplexed.0.serve_connection(stream, service));
        let (mut were_none, mut leaving) = (false, false);
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => return Some(ended),
                () = self.stop.cancelled() => break,
                () = tokio::time::sleep(self.timeout.min(patience)) => match streams.look(&mut were_none) {
                    Found::Moving => leaving = false,
                    Found::Stuck => return None,
                    // It had its time to leave.
                    Found::Idle if leaving => return Some(Ok(())),
                    Found::Idle => {
                        leaving = true;
                        connection.as_mut().graceful_shutdown();
                    }
                },
            }
        }
        connection.as_mut().graceful_shutdown();
        if let Ok(ended) = tokio::time::timeout(self.grace, connection.as_mut()).await {
            return Some(ended);
        }
        while streams.is_handling() {
            if let Ok(ended) = tokio::time::timeout(LOOK, connection.as_mut()).await {
                return Some(ended);
            }
        }
        // What was handled late can be read for as long as others had.
        tokio::time::timeout(self.grace, connection).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_nothing_and_who_takes_nothing_is_found() {
        let (streams, mut none) = (Streams::default(), false);
        assert_eq!(streams.look(&mut none), Found::Moving, "it may have come just now");
        assert_eq!(streams.look(&mut none), Found::Idle);
        let turns = Turns::new();
        streams.begin(&turns);
        turns.pass_to(Turn::Handling);
        for _ in 0..3 {
            assert_eq!(streams.look(&mut none), Found::Moving, "it is Flare's turn");
        }
        assert!(streams.is_handling());
        turns.pass_to(Turn::Reading);
        assert_eq!(streams.look(&mut none), Found::Moving, "it has just become the client's");
        turns.pass_to(Turn::Handling);
        turns.pass_to(Turn::Reading);
        assert_eq!(streams.look(&mut none), Found::Moving, "it took something");
        assert_eq!(streams.look(&mut none), Found::Stuck);
        drop(turns);
        assert_eq!(streams.look(&mut none), Found::Moving);
        assert_eq!(streams.look(&mut none), Found::Idle);
    }
}
