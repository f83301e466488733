//! How Flare speaks TLS to others: with the roots that browsers trust, and no certificate of its own.

use std::sync::Arc;

use anyhow::Context as _;

/// The settings of every connection that Flare opens, unless its configuration says whom else to trust.
pub fn client() -> anyhow::Result<Arc<rustls::ClientConfig>> {
    client_trusting(rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })
}

/// The same, with these roots in place of those.
pub fn client_trusting(roots: rustls::RootCertStore) -> anyhow::Result<Arc<rustls::ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("setting up TLS")?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
