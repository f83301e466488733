//! What delivery is told to keep to. In: the configuration. Out: the plan of a journey over the network.

use std::sync::Arc;

use flare_core::config::Config;
use flare_core::door::Clock;
use flare_core::journey::{Dialler, Plan, Report};
use flare_core::network::Destinations;
use flare_core::tls;
use flare_provider::Store;

/// The plan that the configuration makes for so many cores.
pub fn plan(
    config: &Config,
    cores: usize,
    store: Store,
    clock: Arc<dyn Clock>,
    destinations: &Destinations,
    report: Report,
) -> anyhow::Result<Plan> {
    let tls = tls::client_trusting(&config.http.client.ca, "http.client.ca")?;
    let dialler = Dialler::tcp(destinations.clone(), tls).by_way_of(config.http.client.proxy.get());
    Ok(Plan::new(config, config.delivery.thread_count(cores), store, clock, dialler, report))
}
