//! Metrics: all that is known of the node, put together when somebody asks.

use std::time::Duration;

use crate::config::Store;
use crate::observe::metrics::process::Process;
use crate::observe::metrics::{Facts, Family, StoreFacts, families};
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::telemetry::Telemetry;

/// For so long the size of the store and of the process is taken to be what it was: who scrapes every second does not
/// read it every time.
const FRESH: Duration = Duration::from_secs(5);

/// What is not read every time.
#[derive(Clone, Copy, Default)]
pub struct Measured {
    at: Option<Duration>,
    store: StoreFacts,
    process: Option<Process>,
}

impl App {
    /// All metrics. What changes with every delivery is read now, how subscriptions stand is a second old.
    pub async fn metrics(&self) -> Done<Vec<Family>> {
        let measured = self.measured().await?;
        // There is one as soon as the node is ready, or a moment later.
        let sample =
            self.history.watch().wait_for(Option::is_some).await.ok().and_then(|sample| sample.clone());
        let sample = sample.ok_or(Failure::Stopping)?;
        let facts = Facts {
            sha: self.about.version.sha,
            started_at: self.started_at,
            clock_steps: self.steps.seen().steps,
            traffic: self.traffic.clone(),
            max_connections: self.config.http.server.max_connections,
            census_age: self.clock.monotonic().saturating_sub(sample.census_at),
            resources: self.registry.counts().0,
            store: measured.store,
            process: measured.process,
            spans: self.telemetry.as_ref().map(Telemetry::spans),
        };
        let mut families = families(self.journey.observe().counts().read(), &sample.gauges, &facts);
        families.extend(self.cluster_metrics());
        families.extend(self.consumer_metrics());
        Ok(families)
    }

    async fn measured(&self) -> Done<Measured> {
        let mut measured = self.measured.lock().await;
        let now = self.clock.monotonic();
        if measured.at.is_none_or(|at| now.saturating_sub(at) >= FRESH) {
            let lanes = self.store.documents.lanes().await?;
            let store = StoreFacts {
                documents: lanes.iter().map(|lane| lane.documents).sum(),
                tombstones: lanes.iter().map(|lane| lane.tombstones).sum(),
                bytes: self.store_bytes(),
            };
            *measured = Measured { at: Some(now), store, process: Process::read() };
        }
        Ok(*measured)
    }

    /// The files of the embedded store.
    fn store_bytes(&self) -> Option<u64> {
        if self.config.provider.store != Store::Embedded {
            return None;
        }
        let files = std::fs::read_dir(&self.config.provider.embedded.path).ok()?;
        let sizes = files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len()));
        Some(sizes.sum())
    }
}
