//! A private authority and a server that it vouches for, both made for one test.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// PEM files in a folder that goes with this.
pub struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    /// A new authority, and a server at 127.0.0.1 and nowhere else.
    pub fn new() -> Certificates {
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, "the authority of a test");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = || KeyPair::generate().expect("the machine has random numbers");
        let authority = CertifiedIssuer::self_signed(authority, key()).expect("an authority");
        let server = CertificateParams::new(["127.0.0.1".to_owned()]).expect("an address");
        let own = key();
        let server = server.signed_by(&own, &authority).expect("a certificate");
        let certificates = Certificates { folder: tempfile::tempdir().expect("a folder") };
        for (path, pem) in [
            (certificates.authority(), authority.pem()),
            (certificates.certificate(), server.pem()),
            (certificates.key(), own.serialize_pem()),
        ] {
            std::fs::write(path, pem).expect("a file is written");
        }
        certificates
    }

    /// The authority's own certificate.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// The server's certificate.
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("server.pem")
    }

    /// The server's key.
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("server.key")
    }
}
