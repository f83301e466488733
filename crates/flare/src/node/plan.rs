//! What delivery is told to keep to. In: the configuration. Out: the plan of a journey.

use std::sync::Arc;

use flare_core::config::Config;
use flare_core::door::Clock;
use flare_core::journey::passive::PassiveLimits;
use flare_core::journey::{BreakerSettings, Dialler, Plan, ReadLimits, Report, WorkerLimits};
use flare_core::network::Destinations;
use flare_core::observe;
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
    let threads = config.delivery.thread_count(cores);
    let client = &config.http.client;
    let delivery = &config.delivery;
    let tls = tls::client()?;
    let diallers = (0..threads).map(|_| Dialler { destinations: destinations.clone(), tls: tls.clone() });
    Ok(Plan {
        store,
        clock,
        threads,
        diallers: diallers.collect(),
        report,
        read_limits: ReadLimits {
            read: client.response_limit.as_usize(),
            keep: client.excerpt_limit.as_usize(),
        },
        limits: WorkerLimits {
            connect_timeout: client.connect_timeout,
            idle_timeout: client.idle_timeout,
            record_interval: delivery.record_interval,
            window: delivery.window as u64,
            waiting_limit: delivery.waiting_limit,
            issue_block: u64::from(delivery.issue_block),
            breaker: BreakerSettings {
                failures: delivery.breaker.failures,
                pause: delivery.breaker.pause,
                longest: delivery.breaker.longest_pause,
            },
            failing_after: delivery.failing_after,
            disable_after: delivery.disable_after,
            passive: PassiveLimits {
                maximum_lease: delivery.passive.maximum_lease,
                maximum_wait: delivery.passive.maximum_wait,
                waiters: delivery.passive.waiters,
            },
            state_bytes: delivery.state_bytes.as_usize() / threads,
            state_limit: delivery.state_limit.as_usize(),
        },
        connections: u32::try_from(client.connections).unwrap_or(u32::MAX),
        connections_per_host: u32::try_from(client.connections_per_host).unwrap_or(u32::MAX),
        tail_bytes: delivery.tail_bytes.as_usize(),
        page_rows: delivery.page_rows,
        page_bytes: delivery.page_bytes.as_usize(),
        observe: observe::Limits {
            quantity: delivery.attempts.quantity,
            age: delivery.attempts.age,
            bytes: delivery.attempts.bytes.as_usize() / threads,
            sample: delivery.attempts.sample,
            excerpt: client.excerpt_limit.as_usize(),
            watchers: delivery.attempts.watchers,
        },
        tracer: None,
    })
}
