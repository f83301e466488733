//! The reference engine shows every behaviour.

flare_provider::conformance!(memory, flare_provider::conformance::MemoryFactory);
