//! Clients behind https: whom the configuration trusts is spoken to, over a connection that is kept, and one that is opened
//! again goes on with the session of the last.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{HandshakeKind, ServerConfig};

use crate::support::{Certificates, Receiver, Setup, Story, until};

/// A client that speaks TLS, and closes the connection after its first request.
struct Secure {
    port: u16,
    /// How each connection was agreed on, and how many requests came over it.
    connections: Arc<Mutex<Vec<(HandshakeKind, usize)>>>,
}

impl Secure {
    async fn start(certificates: &Certificates) -> Secure {
        let chain =
            CertificateDer::pem_file_iter(certificates.certificate()).expect("a file of certificates");
        let chain = chain.collect::<Result<Vec<_>, _>>().expect("certificates");
        let key = PrivateKeyDer::from_pem_file(certificates.key()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .expect("a certificate and its key");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let connections = Arc::<Mutex<Vec<_>>>::default();
        tokio::spawn(serve(listener, acceptor, connections.clone()));
        Secure { port, connections }
    }

    fn seen(&self) -> Vec<(HandshakeKind, usize)> {
        self.connections.lock().expect("nobody panics").clone()
    }
}

async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    connections: Arc<Mutex<Vec<(HandshakeKind, usize)>>>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(mut stream) = acceptor.accept(stream).await else { continue };
        let kind = stream.get_ref().1.handshake_kind().expect("it is agreed on");
        let first = {
            let mut connections = connections.lock().expect("nobody panics");
            connections.push((kind, 0));
            connections.len() == 1
        };
        let mut bytes = Vec::new();
        while stream.read_buf(&mut bytes).await.is_ok_and(|came| came > 0) {
            // Every request here has a body that ends so.
            if !bytes.ends_with(b"}}") {
                continue;
            }
            bytes.clear();
            connections.lock().expect("nobody panics").last_mut().expect("it was pushed").1 += 1;
            let word = if first { "close" } else { "keep-alive" };
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: {word}\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.expect("it is taken");
            if first {
                let _ = stream.shutdown().await;
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_client_that_the_file_vouches_for_is_told_over_sessions_that_go_on() {
    let certificates = Certificates::new();
    let client = Secure::start(&certificates).await;
    let authority = certificates.authority();
    let authority = authority.to_str().expect("a path");
    let setup = Setup::default().with("FLARE_HTTP_CLIENT_CA", authority);
    let story = Story::with(setup, Receiver::start().await).await;
    let body = json!({"endpoint": {"url": format!("https://127.0.0.1:{}/told", client.port)}});
    let created = story.api().post(&story.subscriptions(), &body).await.expect(201);
    let subscription = created.header("location").to_owned();
    for document in 1..=4 {
        story.put(document, 1).await;
        story.settled(&subscription).await;
    }
    assert_eq!(client.seen(), [(HandshakeKind::Full, 1), (HandshakeKind::Resumed, 3)]);
}

#[tokio::test]
async fn a_client_that_nobody_vouches_for_is_told_nothing() {
    let certificates = Certificates::new();
    let client = Secure::start(&certificates).await;
    let story = Story::begin().await;
    let body = json!({"endpoint": {"url": format!("https://127.0.0.1:{}/told", client.port)}});
    let created = story.api().post(&story.subscriptions(), &body).await.expect(201);
    let attempts = format!("{}/attempts", created.header("location"));
    story.put(1, 1).await;
    let why = until("an attempt has failed", || async {
        let listed = story.api().get(&attempts).await.expect(200).json();
        listed["attempts"][0]["error"].as_str().map(str::to_owned)
    })
    .await;
    assert!(why.contains("TLS failed") && why.contains("certificate"), "{why}");
    assert!(client.seen().is_empty(), "nothing was agreed on");
}

#[tokio::test]
async fn a_file_that_vouches_for_nobody_is_told_of_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ca.pem");
    std::fs::write(&path, "no certificate").expect("a file is written");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_flare"))
        .args(["start", "--addr", "127.0.0.1:0", "--data"])
        .arg(folder.path().join("data"))
        .env_clear()
        .env("FLARE_HTTP_CLIENT_CA", &path)
        .output()
        .expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("http.client.ca") && said.contains("PEM"), "{said}");
}
