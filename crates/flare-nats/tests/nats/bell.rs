//! The doorbell. The suite is about coordinators and doorbells together; the coordinator here is the one in memory, which shows nothing new.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_provider::conformance::bridge::Server;
use flare_provider::conformance::bridge::fixture::{LOOK, within};
use flare_provider::conformance::cluster::fixture::stopwatch;
use flare_provider::conformance::cluster::{ClusterFactory, Gathering, Participant};
use flare_provider::memory::MemoryCluster;
use flare_provider::{Doorbell as _, Heard, Ring};

use crate::outside::Site;

struct Bells;

struct Ringing {
    site: Site,
    cluster: MemoryCluster,
}

#[async_trait]
impl ClusterFactory for Bells {
    async fn fresh(&self) -> Option<Box<dyn Gathering>> {
        let site = Site::new(Server::Shared).await?;
        Some(Box::new(Ringing { site, cluster: MemoryCluster::new(Arc::new(stopwatch())) }))
    }
}

#[async_trait]
impl Gathering for Ringing {
    async fn join(&self) -> Participant {
        let doorbell = self.site.engine_of(&self.site.stream);
        Participant { cluster: Arc::new(self.cluster.clone()), doorbell: Arc::new(doorbell) }
    }

    fn shortest_ttl(&self) -> Duration {
        Duration::from_secs(1)
    }
}

flare_provider::cluster_conformance!(bell, Bells, flavor = "multi_thread", worker_threads = 2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_whose_connection_broke_says_that_it_missed_some_and_hears_later_rings() {
    let Some(site) = Site::new(Server::Shared).await else { return };
    let doorbell = site.engine_of(&site.stream);
    let mut listener = doorbell.listen().await.expect("it can be listened");
    site.proxy.cut();
    let missed = async {
        while !matches!(listener.next().await, Ok(Heard::Missed)) {
            tokio::time::sleep(LOOK).await;
        }
    };
    within(missed, "it says that it missed some").await;
    let rung = async {
        while doorbell.ring(&[Ring::Catalog { version: 7 }]).await.is_err() {
            tokio::time::sleep(LOOK).await;
        }
    };
    within(rung, "it can ring again").await;
    let heard = within(listener.next(), "it is heard").await.expect("it can be heard");
    assert_eq!(heard, Heard::Rings(vec![Ring::Catalog { version: 7 }]));
}
