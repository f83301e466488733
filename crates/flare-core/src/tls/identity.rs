//! A certificate that Flare shows to a client of its, as a subscription gives it: PEM comes in, what a connection is opened with
//! goes out. Sessions are kept apart from those of others: one that is taken up again is whose it was.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use flare_model::invalid::Invalid;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use sha2::{Digest, Sha256};

/// Sessions that are kept: for the servers of one subscription.
const SESSIONS: usize = 32;

/// As whom a connection is opened. Two are the same when certificate and key are.
pub struct Identity {
    digest: [u8; 32],
    certified: Arc<SingleCertAndKey>,
    /// Made with the first connection.
    config: OnceLock<Arc<ClientConfig>>,
}

impl Identity {
    /// Reads a certificate and its key. What is wrong is named by its field; nothing of the key is repeated.
    pub fn parse(certificate: &str, key: &str) -> Result<Identity, Invalid> {
        let field = "endpoint.tls.certificate";
        let form = "must be PEM: `-----BEGIN CERTIFICATE-----` and so on, Flare's own certificate first";
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<Vec<_>, _>>();
        let chain = chain.ok().filter(|chain| !chain.is_empty()).ok_or_else(|| Invalid::new(field, form))?;
        let field = "endpoint.tls.key";
        let parsed = PrivateKeyDer::from_pem_slice(key.as_bytes());
        let parsed = parsed.map_err(|_| {
            Invalid::new(field, "must be PEM of a private key: `-----BEGIN PRIVATE KEY-----` and so on")
        })?;
        let provider = rustls::crypto::ring::default_provider();
        let certified = CertifiedKey::from_der(chain, parsed, &provider).map_err(|_| {
            Invalid::new(field, "is not the key of endpoint.tls.certificate, or of a kind that is not known")
        })?;
        let digest = Sha256::new().chain_update(certificate).chain_update([0]).chain_update(key).finalize();
        Ok(Identity { digest: digest.into(), certified: Arc::new(certified.into()), config: OnceLock::new() })
    }

    /// What connections are opened with that trust whom `usual` trusts.
    pub fn config(&self, usual: &ClientConfig) -> Arc<ClientConfig> {
        let make = || {
            let mut config = usual.clone();
            config.client_auth_cert_resolver = self.certified.clone();
            config.resumption = Resumption::in_memory_sessions(SESSIONS);
            Arc::new(config)
        };
        self.config.get_or_init(make).clone()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Identity {}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl PartialOrd for Identity {
    fn partial_cmp(&self, other: &Identity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Identity {
    fn cmp(&self, other: &Identity) -> Ordering {
        self.digest.cmp(&other.digest)
    }
}
