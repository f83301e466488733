//! How Flare speaks TLS to others: with the roots that browsers trust or with those of a file, and with no certificate of its own
//! but one that a subscription gives (`identity`). How others speak TLS to it is in `server`.

mod identity;
mod server;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::config::{CertificateFile, Config};

pub use identity::Identity;
pub use server::ServerTls;

/// Sessions that are kept, so that the next connection to the same server is opened with less work. A server has up to
/// eight of them: these are for a thousand servers.
const SESSIONS: usize = 8 * 1024;

/// The settings of every connection that Flare opens, unless its configuration says whom else to trust.
pub fn client() -> anyhow::Result<Arc<ClientConfig>> {
    trusting(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })
}

/// The same, with the authorities of the file in place of the public ones. It is read once, at the start: a file that cannot
/// be used should not be found out about later. `key` is where the configuration names it.
pub fn client_trusting(file: &CertificateFile, key: &str) -> anyhow::Result<Arc<ClientConfig>> {
    match file.path() {
        None => client(),
        Some(path) => trusting(authorities(path).with_context(|| {
            format!("{key} = \"{}\" has to be a PEM file of certificates", path.display())
        })?),
    }
}

/// How a node speaks to others of its cluster: it trusts whom it trusts as a client, and shows those who ask the certificate of its
/// own API.
pub fn between_nodes(config: &Config) -> anyhow::Result<Arc<ClientConfig>> {
    let usual = client_trusting(&config.http.client.ca, "http.client.ca")?;
    let own = &config.http.server.tls;
    let (Some(certificate), Some(key)) = (own.certificate.path(), own.key.path()) else { return Ok(usual) };
    let read =
        |path: &Path| std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()));
    let identity = Identity::parse(&read(certificate)?, &read(key)?);
    Ok(identity.context("showing other nodes the certificate of the API")?.config(&usual))
}

fn trusting(roots: RootCertStore) -> anyhow::Result<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("setting up TLS")?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(Arc::new(config))
}

fn authorities(path: &Path) -> anyhow::Result<RootCertStore> {
    authorities_in(&std::fs::read(path).context("it cannot be read")?)
}

fn authorities_in(text: &[u8]) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text) {
        let certificate = certificate.context("it is not PEM")?;
        roots.add(certificate).context("one of its certificates is none")?;
    }
    if roots.is_empty() {
        bail!("there is no `-----BEGIN CERTIFICATE-----` in it");
    }
    Ok(roots)
}
