//! In: spans that wait, and the counters. Out: batches to a collector, on a thread of its own, so that a collector that
//! is slow or gone costs nobody anything but room in the queue. Spans and metrics go out in loops of their own: one that
//! the collector refuses does not hold up the other.

mod about;
mod answer;
mod meter;
mod metrics;
mod outage;
mod spans;
mod traces;
mod transport;
mod way;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::latest::Latest;
use super::queue::Queue;
use crate::config::TelemetryConfig;
use crate::door::{Chance, Clock};
use about::About;
use meter::Meter;
use traces::Traces;
use transport::Signal;
use way::Way;

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
        clock: &Arc<dyn Clock>,
        queue: &Arc<Queue>,
        latest: Arc<Latest>,
    ) -> anyhow::Result<Exporter> {
        let stop = CancellationToken::new();
        let (end, ended) = oneshot::channel();
        let about = Arc::new(About::new(config));
        let way = |signal| Way::new(config, signal, clock.clone(), queue.clone());
        let meter = Meter { about: about.clone(), way: way(Signal::Metrics)?, latest, stop: stop.clone() };
        let traces = Traces {
            about,
            way: way(Signal::Traces)?,
            chance: Chance::of_machine(),
            interval: config.traces.interval,
            stop: stop.clone(),
            queue: queue.clone(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = move || {
            runtime.block_on(async { tokio::join!(traces.run(), meter.run()) });
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
