//! What consumers need of brokers: the sources that are stored come in; plans of their engines go out, and are carried out.

use std::io::{self, Write as _};
use std::sync::Arc;

use anyhow::Context as _;
use flare_core::bridges::Bridges;
use flare_core::config::Config;
use flare_core::door::{Clock, SystemClock};
use flare_model::bridge::Source;
use flare_model::consumer::StoredConsumer;
use flare_model::ids::ResourceId;
use flare_provider::bridge::{Bridge, BridgeErrorKind};
use tokio::runtime::Runtime;

use super::{Planned, Task};

/// The engines of this build, each with the sources that are its own.
pub struct Brokers {
    runtime: Runtime,
    engines: Vec<Engine>,
}

struct Engine {
    name: &'static str,
    bridge: Arc<dyn Bridge>,
    sources: Vec<(String, Source)>,
}

impl Brokers {
    /// Those that consumers of the store, each with its id and as it is stored, have sources of.
    pub fn of(config: &Config, consumers: Vec<(String, String)>) -> anyhow::Result<Brokers> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::of_process());
        let bridges: Arc<Bridges> = crate::node::bridges::bridges(config, &clock)?;
        let mut sources = Vec::new();
        for (id, body) in consumers {
            let stored: StoredConsumer =
                serde_json::from_str(&body).with_context(|| format!("consumer {id}"))?;
            let settings = stored.check(&ResourceId::new(id.as_str()));
            sources.push((id.clone(), settings.with_context(|| format!("consumer {id}"))?.source));
        }
        let engines = bridges.engines().into_iter().map(|(kinds, bridge)| {
            let own = sources.iter().filter(|(_, source)| kinds.contains(&source.kind()));
            // `aws` for `aws.sqs`.
            let name = kinds.first().map_or("", |kind| kind.split('.').next().unwrap_or(kind));
            Engine { name, bridge, sources: own.cloned().collect() }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Brokers { engines: engines.collect(), runtime: runtime.context("a thread for brokers")? })
    }

    /// What would be done.
    pub fn plan(&self, task: Task) -> anyhow::Result<Vec<Planned>> {
        let mut planned = Vec::new();
        for engine in &self.engines {
            let changes = match task {
                Task::Setup => continue,
                Task::Fixup if engine.sources.is_empty() => continue,
                Task::Fixup => self.runtime.block_on(engine.bridge.missing(&engine.sources)),
                Task::Cleanup => self.runtime.block_on(engine.bridge.left_over(&engine.sources)),
            };
            // Whoever may not look there, and has no consumer there, has made nothing there.
            if let Err(error) = &changes
                && engine.sources.is_empty()
                && error.kind == BridgeErrorKind::Refused
            {
                writeln!(io::stderr(), "flare: {} was not looked at: {error}", engine.name)?;
                continue;
            }
            let changes = changes.with_context(|| format!("asking {}", engine.name))?;
            planned.extend(changes.into_iter().map(|change| Planned { engine: engine.name, change }));
        }
        Ok(planned)
    }

    /// Does what there is to do by now, and answers that.
    pub fn apply(&self, task: Task) -> anyhow::Result<Vec<Planned>> {
        let planned = self.plan(task)?;
        for Planned { engine: name, change } in &planned {
            let engine = self.engines.iter().find(|engine| engine.name == *name);
            let Some(engine) = engine else { continue };
            let done = self.runtime.block_on(engine.bridge.apply(&engine.sources, change));
            done.with_context(|| format!("{} {} of {name}", change.kind, change.name))?;
        }
        Ok(planned)
    }
}
