//! In: encoded messages of one signal. Out: they are sent, counted, and the log hears of it. Each signal has a way of its
//! own, so that what a collector does with one costs the other nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::outage::Outage;
use super::transport::{Refusal, Retry, Signal, Transport};
use crate::config::TelemetryConfig;
use crate::door::Clock;
use crate::telemetry::queue::Queue;

/// The way of one signal to the collector.
pub struct Way {
    signal: Signal,
    transport: Transport,
    outage: Outage,
    clock: Arc<dyn Clock>,
    /// The wall clock, in nanoseconds, when monotonic time began.
    zero: i128,
    queue: Arc<Queue>,
}

impl Way {
    /// As configured; nothing is dialled yet.
    pub fn new(
        config: &TelemetryConfig,
        signal: Signal,
        clock: Arc<dyn Clock>,
        queue: Arc<Queue>,
    ) -> anyhow::Result<Way> {
        let transport = Transport::new(config)?;
        Ok(Way { signal, transport, outage: Outage::of(signal), zero: wall_at_zero(&*clock), clock, queue })
    }

    /// The wall clock when monotonic time began, and now, in nanoseconds. The wall clock may have been set; within a
    /// trace times must not jump because of its milliseconds.
    pub fn times(&mut self) -> (i128, i128) {
        let zero = wall_at_zero(&*self.clock);
        if (zero - self.zero).abs() > 1_000_000_000 {
            self.zero = zero;
        }
        (self.zero, self.zero + self.clock.monotonic().as_nanos() as i128)
    }

    /// One attempt, counted; the log hears of the first failure and of the end of the outage.
    pub async fn send(&mut self, message: &Bytes, spans: usize) -> Result<(), Refusal> {
        let sent = self.transport.send(self.signal, message.clone()).await;
        let (tally, outage) = (&self.queue.tally, &mut self.outage);
        let count = spans as u64;
        match &sent {
            Ok(partial) => {
                outage.over(tally);
                tally.metrics.fetch_add(u64::from(self.signal == Signal::Metrics), Ordering::Relaxed);
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

fn wall_at_zero(clock: &dyn Clock) -> i128 {
    i128::from(clock.now().millis()) * 1_000_000 - clock.monotonic().as_nanos() as i128
}
