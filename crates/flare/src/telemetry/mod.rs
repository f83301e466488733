//! Telemetry by OTLP: in come changes, attempts and counters; out go traces and metrics, to a collector.
//!
//! Where it is off nothing of it exists, and what the hot path pays is to see that. `context` and `sampler` decide,
//! `tracer` makes spans, `queue` holds them, and `export`, on a thread of its own, sends them.

mod accepting;
mod context;
#[cfg(feature = "otlp")]
mod export;
mod queue;
mod sampler;
mod span;
mod tracer;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Serialize;

pub use accepting::Accepting;
pub use context::{Context, SpanId};
pub use span::Operation;
pub use tracer::Tracer;

use crate::config::TelemetryConfig;
use crate::door::Clock;
use queue::Queue;
use sampler::Sampler;

/// What is sent, and the thread that sends it.
pub struct Telemetry {
    tracer: Arc<Tracer>,
    queue: Arc<Queue>,
    #[cfg(feature = "otlp")]
    exporter: export::Exporter,
}

/// How sending goes, as `GET /status` shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TelemetryView {
    spans_exported: u64,
    spans_dropped: u64,
    spans_rejected: u64,
    spans_waiting: usize,
    /// Why the collector takes nothing now.
    #[serde(skip_serializing_if = "Option::is_none")]
    failing: Option<String>,
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
        #[cfg(feature = "otlp")]
        let exporter = export::Exporter::start(config, clock.clone(), queue.clone())?;
        Ok(Some(Telemetry {
            tracer,
            queue,
            #[cfg(feature = "otlp")]
            exporter,
        }))
    }

    /// What makes spans.
    pub fn tracer(&self) -> Arc<Tracer> {
        self.tracer.clone()
    }

    /// How sending goes.
    pub fn view(&self) -> TelemetryView {
        let tally = &self.queue.tally;
        TelemetryView {
            spans_exported: tally.exported.load(Ordering::Relaxed),
            spans_dropped: tally.dropped.load(Ordering::Relaxed),
            spans_rejected: tally.rejected.load(Ordering::Relaxed),
            spans_waiting: self.queue.waiting(),
            failing: tally.failing.lock().clone(),
        }
    }

    /// Sends what is left, within the time that an export may take.
    pub async fn stop(&self) {
        #[cfg(feature = "otlp")]
        self.exporter.stop().await;
    }
}
