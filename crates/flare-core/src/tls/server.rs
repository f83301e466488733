//! How others speak TLS to Flare: the files that the configuration names come in, what the API's listener works with goes out.
//! When the files change it is made anew; connections that are open stay as they are.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;

use super::authorities_in;
use crate::config::ServerTlsConfig;

/// The certificate of the API, as it is now.
pub struct ServerTls {
    files: ServerTlsConfig,
    now: Mutex<(Contents, Arc<ServerConfig>)>,
}

/// What is in the files.
#[derive(PartialEq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl ServerTls {
    /// As configured; nothing where the API is to speak without TLS.
    pub fn open(files: &ServerTlsConfig) -> anyhow::Result<Option<ServerTls>> {
        let Some(contents) = Contents::read(files)? else { return Ok(None) };
        let config = contents.config()?;
        Ok(Some(ServerTls { files: files.clone(), now: Mutex::new((contents, config)) }))
    }

    /// For the next connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.now.lock().1.clone()
    }

    /// Takes up what the files have now, and says whether that is something else. Where they cannot be used, what there was
    /// stays.
    pub fn reload(&self) -> anyhow::Result<bool> {
        let contents = Contents::read(&self.files)?.context("there is no certificate any more")?;
        if self.now.lock().0 == contents {
            return Ok(false);
        }
        let config = contents.config()?;
        *self.now.lock() = (contents, config);
        Ok(true)
    }
}

impl Contents {
    fn read(files: &ServerTlsConfig) -> anyhow::Result<Option<Contents>> {
        let (Some(certificate), Some(key)) = (files.certificate.path(), files.key.path()) else {
            return Ok(None);
        };
        Ok(Some(Contents {
            certificate: read("http.server.tls.certificate", certificate)?,
            key: read("http.server.tls.key", key)?,
            client_ca: files
                .client_ca
                .path()
                .map(|path| read("http.server.tls.client-ca", path))
                .transpose()?,
        }))
    }

    fn config(&self) -> anyhow::Result<Arc<ServerConfig>> {
        const CERTIFICATE: &str =
            "http.server.tls.certificate has to be a PEM file of certificates, the server's first";
        let chain = CertificateDer::pem_slice_iter(&self.certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.context(CERTIFICATE)?;
        if chain.is_empty() {
            bail!("{CERTIFICATE}: there is no `-----BEGIN CERTIFICATE-----` in it");
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        let key = key.context("http.server.tls.key has to be a PEM file of a private key")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .context("setting up TLS")?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(text) => {
                let roots = authorities_in(text)
                    .context("http.server.tls.client-ca has to be a PEM file of certificates")?;
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.context("http.server.tls.client-ca")?)
            }
        };
        let config = builder.with_single_cert(chain, key);
        let mut config = config.context(
            "http.server.tls.key is not the key of http.server.tls.certificate, or neither can be used",
        )?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn read(key: &str, path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("{key} = \"{}\" cannot be read", path.display()))
}
