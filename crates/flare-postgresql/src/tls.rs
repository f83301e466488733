//! TLS to the server: a mode and perhaps a file of certificates come in, what tokio-postgres connects with goes out.
//! By hand, since it is short, and what is published brings a parser of certificates along.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use flare_provider::{ErrorKind, ProviderError, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// Whether the connection is encrypted, and who has to be at its other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Never encrypted.
    Disable,
    /// Encrypted if the server can, whoever it is.
    Prefer,
    /// Encrypted, whoever it is.
    Require,
    /// Encrypted, with a certificate for the name that is connected to, from one of the authorities in this file, or from
    /// those that browsers trust.
    VerifyFull(Option<PathBuf>),
}

impl Tls {
    pub(crate) fn ssl_mode(&self) -> SslMode {
        match self {
            Tls::Disable => SslMode::Disable,
            Tls::Prefer => SslMode::Prefer,
            Tls::Require | Tls::VerifyFull(_) => SslMode::Require,
        }
    }

    pub(crate) fn connector(&self) -> Result<MakeRustls> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .expect("ring can do the usual versions");
        let config = match self {
            Tls::VerifyFull(ca) => builder.with_root_certificates(roots(ca.as_ref())?).with_no_client_auth(),
            Tls::Disable | Tls::Prefer | Tls::Require => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
                .with_no_client_auth(),
        };
        Ok(MakeRustls(Arc::new(config)))
    }
}

fn roots(ca: Option<&PathBuf>) -> Result<RootCertStore> {
    let Some(path) = ca else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let wrong = |error: String| {
        let detail = format!("{} has no certificates that can be read: {error}", path.display());
        ProviderError::new(ErrorKind::Unsupported, "postgresql.open", detail)
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))? {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("there is none".to_owned()));
    }
    Ok(roots)
}

/// Takes every certificate, as `require` of PostgreSQL's own clients does: nobody listens in, but whoever is there may be
/// someone else.
struct Anyone(Arc<CryptoProvider>);

impl fmt::Debug for Anyone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Anyone")
    }
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Makes what turns a connection into an encrypted one.
#[derive(Clone)]
pub(crate) struct MakeRustls(Arc<ClientConfig>);

impl MakeTlsConnect<Socket> for MakeRustls {
    type Stream = Encrypted;
    type TlsConnect = Rustls;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Rustls> {
        // A socket of this machine has no name, and is never encrypted.
        let domain = if domain.is_empty() { "localhost" } else { domain };
        let name = ServerName::try_from(domain.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Rustls { config: self.0.clone(), name })
    }
}

/// Turns one connection into an encrypted one.
pub(crate) struct Rustls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Rustls {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let stream = TlsConnector::from(self.config).connect(self.name, stream).await?;
            Ok(Encrypted(stream))
        })
    }
}

/// An encrypted connection.
pub(crate) struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        // It would take reading the server's certificate, and says nothing that `verify-full` does not.
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
