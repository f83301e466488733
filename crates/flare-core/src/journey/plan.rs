//! What starting the journey takes: the configuration and the parts of a node come in, a [`Plan`] goes out.

use std::sync::Arc;

use flare_provider::Store;

use super::{BreakerSettings, Dialler, ReadLimits, Report, Threads, WorkerLimits};
use crate::config::Config;
use crate::door::{Clock, Entropy};
use crate::journey::subscriber::passive::PassiveLimits;
use crate::journey::tenancy::Tenancy;
use crate::observe;
use crate::telemetry::Tracer;

/// What starting the journey takes.
pub struct Plan {
    /// Where everything is.
    pub store: Store,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What jitter is drawn from.
    pub entropy: Entropy,
    /// How many delivery threads.
    pub threads: usize,
    /// What a delivery thread is.
    pub kind: Threads,
    /// For connections.
    pub dialler: Dialler,
    /// The way to the node.
    pub report: Report,
    /// How much of answers is read.
    pub read_limits: ReadLimits,
    /// Bounds of each thread.
    pub limits: WorkerLimits,
    /// Connections to all hosts, of all threads together.
    pub connections: u32,
    /// Connections to one host, of all threads together.
    pub connections_per_host: u32,
    /// Bytes of newest changes in memory.
    pub tail_bytes: usize,
    /// Rows read from the store at once.
    pub page_rows: usize,
    /// Bytes of pages in memory.
    pub page_bytes: usize,
    /// What is kept of attempts.
    pub observe: observe::Limits,
    /// What makes spans, where telemetry is on.
    pub tracer: Option<Arc<Tracer>>,
    /// What the cluster allows the node, if it is in one.
    pub tenancy: Option<Arc<Tenancy>>,
}

impl Plan {
    /// As configured, with so many threads of the system, and without telemetry.
    pub fn new(
        config: &Config,
        threads: usize,
        store: Store,
        clock: Arc<dyn Clock>,
        dialler: Dialler,
        report: Report,
    ) -> Plan {
        let (client, delivery) = (&config.http.client, &config.delivery);
        Plan {
            store,
            clock,
            entropy: Entropy::of_machine(),
            threads,
            kind: Threads::Own,
            dialler,
            report,
            read_limits: ReadLimits {
                read: client.response_limit.as_usize(),
                keep: client.excerpt_limit.as_usize(),
            },
            limits: limits(config, threads),
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
            tenancy: None,
        }
    }
}

fn limits(config: &Config, threads: usize) -> WorkerLimits {
    let (client, delivery) = (&config.http.client, &config.delivery);
    WorkerLimits {
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
    }
}
