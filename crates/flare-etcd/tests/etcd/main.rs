//! The engine against real servers, which the tests start on free ports and stop by their process.

mod members;
mod server;

use std::time::Duration;

use async_trait::async_trait;
use flare_provider::conformance::cluster::{ClusterFactory, Gathering, Participant};

use server::Servers;

struct EtcdFactory;

struct EtcdGathering(Servers);

#[async_trait]
impl ClusterFactory for EtcdFactory {
    async fn fresh(&self) -> Option<Box<dyn Gathering>> {
        Some(Box::new(EtcdGathering(Servers::start(1).await?)))
    }
}

#[async_trait]
impl Gathering for EtcdGathering {
    async fn join(&self) -> Participant {
        self.0.participant()
    }

    fn shortest_ttl(&self) -> Duration {
        Duration::from_secs(2)
    }
}

flare_provider::cluster_conformance!(cluster, EtcdFactory, flavor = "multi_thread", worker_threads = 2);
