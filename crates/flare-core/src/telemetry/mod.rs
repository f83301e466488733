//! Telemetry by OTLP: in come changes, attempts and counters; out go traces and metrics, to a collector.
//!
//! Where it is off nothing of it exists, and what the hot path pays is to see that. `sampler` decides,
//! `tracer` makes spans, `queue` holds them, and `export`, on a thread of its own, sends them.

#![cfg_attr(
    not(feature = "otlp"),
    allow(dead_code, reason = "nothing is sent, so nobody reads what would be")
)]

mod accepting;
#[cfg(feature = "otlp")]
mod export;
mod latest;
mod queue;
mod sampler;
mod span;
mod tracer;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use schemars::JsonSchema;
use serde::Serialize;

pub use accepting::Accepting;
pub use span::Operation;
pub use tracer::Tracer;

use crate::config::TelemetryConfig;
use crate::door::Clock;
use crate::observe::metrics::Family;
use latest::Latest;
use queue::{Queue, Tally};
use sampler::Sampler;

/// What is sent, and the thread that sends it.
pub struct Telemetry {
    tracer: Arc<Tracer>,
    queue: Arc<Queue>,
    latest: Arc<Latest>,
    #[cfg(feature = "otlp")]
    exporter: export::Exporter,
}

/// How sending goes, as `GET /status` shows it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TelemetryView {
    /// Spans that the collector took.
    spans_exported: u64,
    /// Spans that were dropped here.
    spans_dropped: u64,
    /// Spans that the collector refused.
    spans_rejected: u64,
    /// Spans that wait to be sent.
    spans_waiting: usize,
    /// Exports of metrics that the collector took.
    metrics_exported: u64,
    /// Why the collector takes no spans now.
    #[serde(skip_serializing_if = "Option::is_none")]
    failing: Option<String>,
    /// Why the collector takes no metrics now.
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics_failing: Option<String>,
}

impl Telemetry {
    /// Starts the thread that sends, where the configuration names a collector.
    pub fn start(config: &TelemetryConfig, clock: &Arc<dyn Clock>) -> anyhow::Result<Option<Telemetry>> {
        if config.endpoint.get().is_none() {
            return Ok(None);
        }
        let traces = &config.traces;
        let queue = Arc::new(Queue::new(traces.queue, traces.batch));
        let sampler = Sampler::new(traces.ratio.0, traces.parent_based);
        let tracer = Arc::new(Tracer::new(sampler, clock.clone(), queue.clone()));
        let latest = Arc::new(Latest::default());
        #[cfg(feature = "otlp")]
        let exporter = export::Exporter::start(config, clock, &queue, latest.clone())?;
        Ok(Some(Telemetry {
            tracer,
            queue,
            latest,
            #[cfg(feature = "otlp")]
            exporter,
        }))
    }

    /// What makes spans.
    pub fn tracer(&self) -> Arc<Tracer> {
        self.tracer.clone()
    }

    /// Leaves metrics to be sent.
    pub fn offer(&self, families: Vec<Family>) {
        self.latest.put(families);
    }

    /// What became of spans, each with its name.
    pub fn spans(&self) -> [(&'static str, u64); 3] {
        let Tally { exported, dropped, rejected, .. } = &self.queue.tally;
        let names = ["exported", "dropped", "rejected"];
        let counts = [exported, dropped, rejected].map(|count| count.load(Ordering::Relaxed));
        std::array::from_fn(|index| (names[index], counts[index]))
    }

    /// How sending goes.
    pub fn view(&self) -> TelemetryView {
        let tally = &self.queue.tally;
        let [(_, spans_exported), (_, spans_dropped), (_, spans_rejected)] = self.spans();
        let [failing, metrics_failing] = &tally.failing;
        TelemetryView {
            spans_exported,
            spans_dropped,
            spans_rejected,
            spans_waiting: self.queue.waiting(),
            metrics_exported: tally.metrics.load(Ordering::Relaxed),
            failing: failing.lock().clone(),
            metrics_failing: metrics_failing.lock().clone(),
        }
    }

    /// Sends what is left, within the time that an export may take.
    pub async fn stop(&self) {
        #[cfg(feature = "otlp")]
        self.exporter.stop().await;
    }
}
