//! The reference engine shows every behaviour.

flare_provider::conformance!(memory, flare_provider::conformance::MemoryFactory);

flare_provider::cluster_conformance!(
    cluster,
    flare_provider::conformance::cluster::fixture::MemoryClusterFactory,
    start_paused = true
);
