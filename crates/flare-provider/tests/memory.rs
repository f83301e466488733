//! The reference engine shows every behaviour.

use flare_provider::conformance::bridge;

flare_provider::conformance!(memory, flare_provider::conformance::MemoryFactory);

flare_provider::cluster_conformance!(
    cluster,
    flare_provider::conformance::cluster::fixture::MemoryClusterFactory,
    start_paused = true
);

flare_provider::source_conformance!(
    acknowledged_source,
    bridge::memory::MemorySources(flare_provider::bridge::Progress::Acknowledgements),
    start_paused = true
);

flare_provider::source_conformance!(
    positioned_source,
    bridge::memory::MemorySources(flare_provider::bridge::Progress::Positions),
    start_paused = true
);

flare_provider::sink_conformance!(sink, bridge::memory::MemorySinks, start_paused = true);
