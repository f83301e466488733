//! The bridges of this node: settings of a consumer or a producer come in, its source or its sink goes out. What is not in
//! this build is refused by name.
//!
//! Sinks are shared: whoever sends to the same place goes by the same [`Outlet`], on whichever thread.

mod gathering;
mod outlet;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use flare_model::bridge;
use flare_provider::bridge::{Bridge, BridgeError, BridgeErrorKind, BridgeResult, Source};
use parking_lot::Mutex;

pub use outlet::Outlet;

/// What leads to sources and sinks of a type.
#[derive(Clone)]
enum Way {
    Open(Arc<dyn Bridge>),
    /// The feature to build with.
    NotBuilt(&'static str),
    /// The key of the configuration to set.
    NotSet(&'static str),
}

/// The engines that sources and sinks come from, by the word for their type (`rabbitmq`, `aws.sqs`).
#[derive(Default)]
pub struct Bridges {
    ways: BTreeMap<&'static str, Way>,
    /// Bound: one entry for each place that a producer sends to; those that nobody sends to any more go when the next is opened.
    outlets: Mutex<HashMap<bridge::Target, Weak<Outlet>>>,
}

impl Bridges {
    /// None at all.
    pub fn none() -> Arc<Bridges> {
        Arc::default()
    }

    /// These types come from this engine.
    #[must_use]
    pub fn with(mut self, kinds: &[&'static str], engine: &Arc<dyn Bridge>) -> Bridges {
        self.ways.extend(kinds.iter().map(|kind| (*kind, Way::Open(engine.clone()))));
        self
    }

    /// These types are known, and not in this build: the feature has to be there when it is built.
    #[must_use]
    pub fn without(mut self, kinds: &[&'static str], feature: &'static str) -> Bridges {
        self.ways.extend(kinds.iter().map(|kind| (*kind, Way::NotBuilt(feature))));
        self
    }

    /// These types are in this build, and nobody has said where they are: this key of the configuration would.
    #[must_use]
    pub fn unset(mut self, kinds: &[&'static str], key: &'static str) -> Bridges {
        self.ways.extend(kinds.iter().map(|kind| (*kind, Way::NotSet(key))));
        self
    }

    /// The source of a consumer. `Refused`: there is none of that type.
    pub fn source(&self, consumer: &str, settings: &bridge::Source) -> BridgeResult<Arc<dyn Source>> {
        self.engine(settings.kind())?.source(consumer, settings)
    }

    /// The way to the sink of these settings, the same for all who have them. `Refused`: there is none of that type.
    pub fn outlet(&self, settings: &bridge::Target) -> BridgeResult<Arc<Outlet>> {
        let engine = self.engine(settings.kind())?;
        let mut outlets = self.outlets.lock();
        if let Some(open) = outlets.get(settings).and_then(Weak::upgrade) {
            return Ok(open);
        }
        outlets.retain(|_, outlet| outlet.strong_count() > 0);
        let opened = Arc::new(Outlet::new(settings.to_string(), engine.sink(settings)?));
        outlets.insert(settings.clone(), Arc::downgrade(&opened));
        Ok(opened)
    }

    /// The same for a producer that was stored: where there is none any more it fails, and says why.
    pub fn outlet_or_none(&self, settings: &bridge::Target) -> Arc<Outlet> {
        self.outlet(settings).unwrap_or_else(|why| Arc::new(Outlet::closed(settings.to_string(), why.detail)))
    }

    /// What serves a type, for whoever asks an engine more than for a source or a sink. `Refused`: nothing does.
    pub fn engine(&self, kind: &str) -> BridgeResult<&Arc<dyn Bridge>> {
        let refused = |detail| BridgeError::new(BridgeErrorKind::Refused, detail);
        match self.ways.get(kind) {
            Some(Way::Open(engine)) => Ok(engine),
            Some(Way::NotSet(key)) => Err(refused(format!("{kind} is not configured: set {key}"))),
            Some(Way::NotBuilt(feature)) => {
                Err(refused(format!("{kind} is not in this build: build with --features {feature}")))
            }
            None => Err(refused(format!("{kind} is not in this build"))),
        }
    }

    /// Every engine with the types that come from it, once.
    pub fn engines(&self) -> Vec<(Vec<&'static str>, Arc<dyn Bridge>)> {
        let mut engines: Vec<(Vec<&'static str>, Arc<dyn Bridge>)> = Vec::new();
        for (kind, way) in &self.ways {
            let Way::Open(engine) = way else { continue };
            match engines.iter_mut().find(|(_, known)| Arc::ptr_eq(known, engine)) {
                Some((kinds, _)) => kinds.push(kind),
                None => engines.push((vec![kind], engine.clone())),
            }
        }
        engines
    }
}
