//! In: the file with the authorities that an operator trusts, or none. Out: how TLS is spoken to a collector, or what is
//! wrong with the file. It is read once, at the start: a file that cannot be used should not be found out about later.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::config::CertificateFile;
use crate::tls;

/// How TLS is spoken, with the authorities of the file in place of the public ones.
pub fn client(file: &CertificateFile) -> anyhow::Result<Arc<ClientConfig>> {
    match file.path() {
        None => tls::client(),
        Some(path) => {
            let roots = authorities(path).with_context(|| {
                format!("telemetry.certificate = \"{}\" has to be a PEM file of certificates", path.display())
            })?;
            tls::client_trusting(roots)
        }
    }
}

fn authorities(path: &Path) -> anyhow::Result<RootCertStore> {
    let text = std::fs::read(path).context("it cannot be read")?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.context("it is not PEM")?;
        roots.add(certificate).context("one of its certificates is none")?;
    }
    if roots.is_empty() {
        bail!("there is no `-----BEGIN CERTIFICATE-----` in it");
    }
    Ok(roots)
}
