//! In: spans that wait, and the counters. Out: batches to a collector, on a thread of its own, so that a collector that
//! is slow or gone costs nobody anything but room in the queue.

mod about;
mod outage;
mod proto;
mod spans;
mod transport;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::queue::Queue;
use super::span::Span;
use crate::config::TelemetryConfig;
use crate::door::{Chance, Clock};
use about::About;
use outage::Outage;
use transport::{Refusal, Retry, Signal, Transport};

/// The thread that sends.
pub struct Exporter {
    stop: CancellationToken,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Exporter {
    /// Starts it.
    pub fn start(
        config: &TelemetryConfig,
        clock: Arc<dyn Clock>,
        queue: Arc<Queue>,
    ) -> anyhow::Result<Exporter> {
        let stop = CancellationToken::new();
        let (end, ended) = oneshot::channel();
        let sending = Sending {
            about: About::new(config),
            transport: Transport::new(config)?,
            chance: Chance::of_machine(),
            zero: wall_at_zero(&*clock),
            outage: Outage::default(),
            interval: config.traces.interval,
            timeout: config.timeout,
            stop: stop.clone(),
            clock,
            queue,
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
        Ok(Exporter { stop, ended: Mutex::new(Some(ended)) })
    }

    /// Sends what is left and waits until that is over; it takes no longer than an export may.
    pub async fn stop(&self) {
        self.stop.cancel();
        let ended = self.ended.lock().take();
        if let Some(ended) = ended {
            let _ = ended.await;
        }
    }
}

struct Sending {
    about: About,
    transport: Transport,
    clock: Arc<dyn Clock>,
    chance: Chance,
    queue: Arc<Queue>,
    /// The wall clock, in nanoseconds, when monotonic time began.
    zero: i128,
    outage: Outage,
    interval: Duration,
    timeout: Duration,
    stop: CancellationToken,
}

impl Sending {
    async fn run(mut self) {
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.queue.batch_is_there() => {}
                () = tokio::time::sleep(self.interval) => {}
                () = self.stop.cancelled() => break,
            }
            self.send_batches().await;
        }
        if tokio::time::timeout(self.timeout, self.send_rest()).await.is_err() {
            tracing::warn!("telemetry: the collector did not take the last spans in time");
        }
        let left = self.queue.waiting() as u64;
        self.queue.tally.dropped.fetch_add(left, Ordering::Relaxed);
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
                    Retry::Later => backoff(failures, self.chance.unit()),
                    Retry::After(wait) => wait.min(LONGEST),
                };
                failures += 1;
                if self.stop.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                    // Once more, as the last thing.
                    let _ = tokio::time::timeout(
                        self.timeout,
                        self.send(Signal::Traces, &message, spans.len()),
                    )
                    .await;
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
            if let Err(Refusal { retry: Retry::Later | Retry::After(_), .. }) =
                self.send(Signal::Traces, &message, count).await
            {
                self.queue.tally.dropped.fetch_add(count as u64, Ordering::Relaxed);
                return;
            }
        }
    }

    fn encode(&mut self, batch: &[Span]) -> Bytes {
        // The wall clock may have been set; within a trace times must not jump because of its milliseconds.
        let zero = wall_at_zero(&*self.clock);
        if (zero - self.zero).abs() > 1_000_000_000 {
            self.zero = zero;
        }
        spans::encode(&self.about, batch, self.zero).into()
    }

    /// One attempt, counted; the log hears of the first failure and of the end of the outage.
    async fn send(&mut self, signal: Signal, message: &Bytes, count: usize) -> Result<(), Refusal> {
        let sent = self.transport.send(signal, message.clone()).await;
        let tally = &self.queue.tally;
        let count = if signal == Signal::Traces { count as u64 } else { 0 };
        match &sent {
            Ok(partial) => {
                self.outage.over(tally);
                let rejected = partial.as_ref().map_or(0, |(rejected, _)| (*rejected).min(count));
                tally.exported.fetch_add(count - rejected, Ordering::Relaxed);
                tally.rejected.fetch_add(rejected, Ordering::Relaxed);
                if let Some((_, why)) = partial {
                    self.outage.partial(signal, why);
                }
            }
            Err(refusal) => {
                if refusal.retry == Retry::Never {
                    tally.rejected.fetch_add(count, Ordering::Relaxed);
                }
                self.outage.begins(tally, &refusal.why);
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
