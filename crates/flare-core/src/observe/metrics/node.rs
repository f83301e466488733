//! The node itself: what it stores, what it takes, which build it is.

use std::sync::Arc;
use std::time::Duration;

use flare_model::time::Timestamp;

use super::process::Process;
use super::{Family, Labelled, Samples};
use crate::observe::count::Traffic;
use crate::version;

/// What is known of the node beyond what it counts.
#[derive(Debug)]
pub struct Facts {
    /// The commit this Flare was built from.
    pub sha: &'static str,
    /// When the process began.
    pub started_at: Timestamp,
    /// How often the wall clock was set since.
    pub clock_steps: u64,
    /// What was asked over HTTP.
    pub traffic: Arc<Traffic>,
    /// How many connections the API takes.
    pub max_connections: usize,
    /// How long ago the subscriptions were last looked at.
    pub census_age: Duration,
    /// Resources.
    pub resources: usize,
    /// What is stored.
    pub store: StoreFacts,
    /// What the process takes, where the system says it.
    pub process: Option<Process>,
    /// What became of spans for a collector, each with its name, where telemetry is on.
    pub spans: Option<[(&'static str, u64); 3]>,
}

/// What is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreFacts {
    /// Documents, deleted ones not among them.
    pub documents: u64,
    /// Deleted ones that are remembered.
    pub tombstones: u64,
    /// Bytes of the store's files, where it has any.
    pub bytes: Option<u64>,
}

/// Families about the node.
pub fn families(facts: &Facts) -> Vec<Family> {
    let Facts { sha, started_at, clock_steps, census_age, resources, store, process, spans, .. } = facts;
    let mut families = vec![
        Family::gauge("flare_resources", "Resources.", *resources as f64),
        Family::gauge("flare_documents", "Documents, without deleted ones.", store.documents as f64),
        Family::gauge(
            "flare_tombstones",
            "Deleted documents that are still remembered.",
            store.tombstones as f64,
        ),
    ];
    if let Some(bytes) = store.bytes {
        families.push(Family::gauge(
            "flare_store_size_bytes",
            "Size of the files of the embedded store.",
            bytes as f64,
        ));
    }
    if let Some(spans) = spans {
        families.push(Family::counters(
            "flare_telemetry_spans_total",
            "Spans for a collector, by what became of them.",
            "outcome",
            *spans,
        ));
    }
    let build = Labelled { labels: vec![("version", version::VERSION), ("sha", *sha)], value: 1.0 };
    families.extend([
        Family::gauge(
            "flare_census_age_seconds",
            "How old the numbers of subscriptions, backlogs and hosts are.",
            census_age.as_secs_f64(),
        ),
        Family {
            name: "flare_clock_steps_total",
            help: "How often the wall clock of the machine was set by two seconds or more.",
            samples: Samples::Counter(vec![Labelled { labels: Vec::new(), value: *clock_steps as f64 }]),
        },
        Family {
            name: "flare_build_info",
            help: "Which build this is; the value is always 1.",
            samples: Samples::Gauge(vec![build]),
        },
        Family::gauge(
            "process_start_time_seconds",
            "When the process began, in seconds since 1970.",
            started_at.millis() as f64 / 1000.0,
        ),
    ]);
    families.extend(process.iter().flat_map(of_process));
    families
}

fn of_process(process: &Process) -> Vec<Family> {
    let cpu = Labelled { labels: Vec::new(), value: process.cpu.as_secs_f64() };
    vec![
        Family {
            name: "process_cpu_seconds_total",
            help: "Processor time that the process has used.",
            samples: Samples::Counter(vec![cpu]),
        },
        Family::gauge(
            "process_resident_memory_bytes",
            "Memory of the process that is in the machine's memory.",
            process.resident as f64,
        ),
        Family::gauge(
            "process_virtual_memory_bytes",
            "Memory that the process has mapped.",
            process.mapped as f64,
        ),
        Family::gauge("process_threads", "Threads of the process.", process.threads as f64),
        Family::gauge("process_open_fds", "Files and sockets that are open.", process.files as f64),
        Family::gauge(
            "process_max_fds",
            "How many files and sockets may be open.",
            process.most_files.map_or(f64::INFINITY, |most| most as f64),
        ),
    ]
}
