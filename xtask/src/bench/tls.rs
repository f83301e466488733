//! Who the sink is where it speaks TLS: an authority made for the run, and a certificate of it for 127.0.0.1.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

pub struct Identity {
    config: Arc<ServerConfig>,
    /// The authority's certificate, in a file: what Flare is told to trust.
    pub authority: PathBuf,
}

impl Identity {
    /// A new one; the file is written into `folder`.
    pub fn new(folder: &Path) -> anyhow::Result<Identity> {
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "the authority of a benchmark");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let own = CertificateParams::new(["127.0.0.1".to_owned()])?.signed_by(&key, &authority)?;
        let path = folder.join(format!("bench-authority-{}.pem", std::process::id()));
        std::fs::write(&path, authority.pem()).with_context(|| format!("writing {}", path.display()))?;
        let secret = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], secret)?;
        Ok(Identity { config: Arc::new(config), authority: path })
    }

    /// What accepts connections as this one.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.clone())
    }
}

impl Drop for Identity {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.authority);
    }
}
