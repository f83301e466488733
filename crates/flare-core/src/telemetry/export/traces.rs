//! In: spans that wait. Out: batches of them, each sent until the collector takes or refuses it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::about::About;
use super::spans;
use super::transport::Retry;
use super::way::Way;
use crate::door::Chance;
use crate::telemetry::queue::Queue;
use crate::telemetry::span::Span;

/// What sends spans.
pub struct Traces {
    /// Who sends.
    pub about: Arc<About>,
    /// Where to.
    pub way: Way,
    /// What varies the waits.
    pub chance: Chance,
    /// The spans.
    pub queue: Arc<Queue>,
    /// How long a span waits at most for others to go with.
    pub interval: Duration,
    /// The node stops.
    pub stop: CancellationToken,
}

impl Traces {
    /// Sends until the node stops, and then what is left.
    pub async fn run(mut self) {
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.queue.batch_is_there() => {}
                () = tokio::time::sleep(self.interval) => {}
                () = self.stop.cancelled() => break,
            }
            self.send_batches().await;
        }
        self.send_rest().await;
        let left = self.queue.waiting() as u64;
        let dropped = self.queue.tally.dropped.fetch_add(left, Ordering::Relaxed) + left;
        if dropped > 0 {
            tracing::warn!(dropped, "the telemetry collector did not get all spans");
        }
    }

    /// Sends what is there, however often that takes; ends early when the node stops.
    async fn send_batches(&mut self) {
        loop {
            let spans = self.queue.take();
            if spans.is_empty() {
                return;
            }
            let more = self.queue.has_batch();
            let message = self.encode(&spans);
            let mut failures = 0;
            while let Err(refusal) = self.way.send(&message, spans.len()).await {
                let wait = match refusal.retry {
                    Retry::Never => break,
                    Retry::Later | Retry::Now => backoff(failures, self.interval, self.chance.unit()),
                    Retry::After(wait) => wait.min(LONGEST),
                };
                failures += 1;
                if self.stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                    // Once more, as the last thing.
                    if self.way.send(&message, spans.len()).await.is_err() {
                        self.queue.tally.dropped.fetch_add(spans.len() as u64, Ordering::Relaxed);
                    }
                    return;
                }
            }
            if !more {
                return;
            }
        }
    }

    /// Once each: there is no time to wait for a collector that is gone.
    async fn send_rest(&mut self) {
        loop {
            let spans = self.queue.take();
            if spans.is_empty() {
                return;
            }
            let message = self.encode(&spans);
            let count = spans.len();
            let sent = self.way.send(&message, count).await;
            if sent.is_err_and(|refusal| refusal.retry != Retry::Never) {
                self.queue.tally.dropped.fetch_add(count as u64, Ordering::Relaxed);
                return;
            }
        }
    }

    fn encode(&mut self, batch: &[Span]) -> Bytes {
        let (zero, _) = self.way.times();
        spans::encode(&self.about, batch, zero).into()
    }
}

/// The longest wait that a collector may ask for.
const LONGEST: Duration = Duration::from_secs(30);

/// How long to wait after so many failures: from one second, doubled each time, and half of it by chance. Never longer
/// than between two batches when all is well, or a second if that is less: a collector that is back soon gets spans
/// again, and one that is not is asked no more often than one that is there. Pure.
fn backoff(failures: u32, interval: Duration, jitter: f64) -> Duration {
    let longest = interval.clamp(Duration::from_secs(1), LONGEST);
    let whole = Duration::from_secs(1 << failures.min(5)).min(longest);
    whole.mul_f64(0.5 + jitter / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_and_is_no_longer_than_the_interval() {
        let waits = |interval: Duration| -> Vec<u64> {
            (0..8).map(|failures| backoff(failures, interval, 1.0).as_secs()).collect()
        };
        assert_eq!(waits(Duration::from_secs(3600)), [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(waits(Duration::from_secs(5)), [1, 2, 4, 5, 5, 5, 5, 5]);
        assert_eq!(waits(Duration::from_millis(20)), [1; 8]);
        assert_eq!(backoff(0, Duration::from_secs(5), 0.0), Duration::from_millis(500));
    }
}
