//! In: spans that wait, and the counters. Out: batches to a collector, on a thread of its own, so that a collector that
//! is slow or gone costs nobody anything but room in the queue.

mod about;
mod answer;
mod metrics;
mod outage;
mod spans;
mod transport;
mod trust;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::latest::Latest;
use super::queue::Queue;
use super::span::Span;
use crate::config::TelemetryConfig;
use crate::door::{Chance, Clock};
use about::About;
use metrics::Period;
use outage::Outage;
use transport::{Refusal, Retry, Signal, Transport};

/// The thread that sends.
pub struct Exporter {
    stop: CancellationToken,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
    timeout: Duration,
}

impl Exporter {
    /// Starts it.
    pub fn start(
        config: &TelemetryConfig,
        clock: Arc<dyn Clock>,
        queue: Arc<Queue>,
        latest: Arc<Latest>,
    ) -> anyhow::Result<Exporter> {
        let stop = CancellationToken::new();
        let (end, ended) = oneshot::channel();
        let sending = Sending {
            about: About::new(config),
            transport: Transport::new(config)?,
            chance: Chance::of_machine(),
            zero: wall_at_zero(&*clock),
            outages: [Signal::Traces, Signal::Metrics].map(Outage::of),
            interval: config.traces.interval,
            stop: stop.clone(),
            clock,
            queue,
            latest,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = move || {
            runtime.block_on(sending.run());
            let _ = end.send(());
        };
        std::thread::Builder::new()
            .name("flare-telemetry".to_owned())
            .spawn(run)
            .context("starting the thread that sends telemetry")?;
        Ok(Exporter { stop, ended: Mutex::new(Some(ended)), timeout: config.timeout })
    }

    /// Sends what is left and waits until that is over, for no longer than an export may take: what is under way then
    /// ends with the process.
    pub async fn stop(&self) {
        self.stop.cancel();
        let Some(ended) = self.ended.lock().take() else { return };
        if tokio::time::timeout(self.timeout, ended).await.is_err() {
            tracing::warn!("the telemetry collector did not take the last spans in time (telemetry.timeout)");
        }
    }
}

struct Sending {
    about: About,
    transport: Transport,
    clock: Arc<dyn Clock>,
    chance: Chance,
    queue: Arc<Queue>,
    latest: Arc<Latest>,
    /// The wall clock, in nanoseconds, when monotonic time began.
    zero: i128,
    /// By signal.
    outages: [Outage; 2],
    interval: Duration,
    stop: CancellationToken,
}

impl Sending {
    async fn run(mut self) {
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.queue.batch_is_there() => {}
                () = self.latest.there() => {}
                () = tokio::time::sleep(self.interval) => {}
                () = self.stop.cancelled() => break,
            }
            self.send_metrics().await;
            self.send_batches().await;
        }
        self.send_rest().await;
        let left = self.queue.waiting() as u64;
        let dropped = self.queue.tally.dropped.fetch_add(left, Ordering::Relaxed) + left;
        if dropped > 0 {
            tracing::warn!(dropped, "the telemetry collector did not get all spans");
        }
    }

    /// Sends metrics, once: the next ones say all that these would have said.
    async fn send_metrics(&mut self) {
        let Some(families) = self.latest.take() else { return };
        self.set_zero();
        let time = self.zero + self.clock.monotonic().as_nanos() as i128;
        let [start, time] = [self.zero, time].map(|nanos| u64::try_from(nanos).unwrap_or(0));
        let message = metrics::encode(&self.about, &families, Period { start, time }).into();
        let _ = self.send(Signal::Metrics, &message, 0).await;
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
            while let Err(refusal) = self.send(Signal::Traces, &message, spans.len()).await {
                let wait = match refusal.retry {
                    Retry::Never => break,
                    Retry::Later | Retry::Now => backoff(failures, self.chance.unit()),
                    Retry::After(wait) => wait.min(LONGEST),
                };
                failures += 1;
                if self.stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                    // Once more, as the last thing.
                    if self.send(Signal::Traces, &message, spans.len()).await.is_err() {
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
        self.send_metrics().await;
        loop {
            let spans = self.queue.take();
            if spans.is_empty() {
                return;
            }
            let message = self.encode(&spans);
            let count = spans.len();
            let sent = self.send(Signal::Traces, &message, count).await;
            if sent.is_err_and(|refusal| refusal.retry != Retry::Never) {
                self.queue.tally.dropped.fetch_add(count as u64, Ordering::Relaxed);
                return;
            }
        }
    }

    fn encode(&mut self, batch: &[Span]) -> Bytes {
        self.set_zero();
        spans::encode(&self.about, batch, self.zero).into()
    }

    /// The wall clock may have been set; within a trace times must not jump because of its milliseconds.
    fn set_zero(&mut self) {
        let zero = wall_at_zero(&*self.clock);
        if (zero - self.zero).abs() > 1_000_000_000 {
            self.zero = zero;
        }
    }

    /// One attempt, counted; the log hears of the first failure and of the end of the outage.
    async fn send(&mut self, signal: Signal, message: &Bytes, count: usize) -> Result<(), Refusal> {
        let sent = self.transport.send(signal, message.clone()).await;
        let (tally, outage) = (&self.queue.tally, &mut self.outages[signal as usize]);
        let count = count as u64;
        match &sent {
            Ok(partial) => {
                outage.over(tally);
                tally.metrics.fetch_add(u64::from(signal == Signal::Metrics), Ordering::Relaxed);
                let rejected = partial.as_ref().map_or(0, |(rejected, _)| (*rejected).min(count));
                tally.exported.fetch_add(count - rejected, Ordering::Relaxed);
                tally.rejected.fetch_add(rejected, Ordering::Relaxed);
                if let Some((_, why)) = partial {
                    outage.partial(why);
                }
            }
            Err(refusal) => {
                if refusal.retry == Retry::Never {
                    tally.rejected.fetch_add(count, Ordering::Relaxed);
                }
                outage.begins(tally, &refusal.why);
            }
        }
        sent.map(|_| ())
    }
}

/// The longest wait between two attempts of an export.
const LONGEST: Duration = Duration::from_secs(30);

/// How long to wait after so many failures: from one second, doubled each time, up to [`LONGEST`], and half of it by
/// chance. Pure.
fn backoff(failures: u32, jitter: f64) -> Duration {
    let whole = Duration::from_secs(1 << failures.min(5)).min(LONGEST);
    whole.mul_f64(0.5 + jitter / 2.0)
}

fn wall_at_zero(clock: &dyn Clock) -> i128 {
    i128::from(clock.now().millis()) * 1_000_000 - clock.monotonic().as_nanos() as i128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_bound() {
        let waits: Vec<u64> = (0..8).map(|failures| backoff(failures, 1.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(backoff(0, 0.0), Duration::from_millis(500));
    }
}
