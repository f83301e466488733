//! On the way out: as whom Flare comes to its clients, and by way of whom.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::support::{Certificates, Receiver, Setup, Story, until_true};

/// The path of a request, and the certificate it came with.
type Came = (String, Vec<u8>);

/// A client that asks for a certificate, and remembers who came with which request.
struct Asking {
    port: u16,
    came: Arc<Mutex<Vec<Came>>>,
}

fn certificate(of: &Certificates) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(of.certificate()).expect("a certificate")
}

impl Asking {
    async fn start(own: &Certificates, trusts: &[&Certificates]) -> Asking {
        let mut roots = RootCertStore::empty();
        for one in trusts {
            roots.add(CertificateDer::from_pem_file(one.authority()).unwrap()).unwrap();
        }
        let provider = Arc::new(default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate(own)], PrivateKeyDer::from_pem_file(own.key()).unwrap())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let came = Arc::<Mutex<Vec<_>>>::default();
        let (acceptor, noted) = (TlsAcceptor::from(Arc::new(config)), came.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, noted) = (acceptor.clone(), noted.clone());
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let who = stream.get_ref().1.peer_certificates().expect("it was asked for")[0].to_vec();
                    let mut bytes = Vec::new();
                    while stream.read_buf(&mut bytes).await.is_ok_and(|came| came > 0) {
                        // Every request here has a body that ends so.
                        if !bytes.ends_with(b"}}") {
                            continue;
                        }
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
                        noted.lock().unwrap().push((path, who.clone()));
                        bytes.clear();
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
                    }
                });
            }
        });
        Asking { port, came }
    }

    fn count(&self) -> usize {
        self.came.lock().unwrap().len()
    }
}

fn identity(of: &Certificates) -> Value {
    let text = |path| std::fs::read_to_string(path).unwrap();
    json!({"certificate": text(of.certificate()), "key": text(of.key())})
}

#[tokio::test(flavor = "multi_thread")]
async fn each_subscription_comes_with_its_own_certificate() {
    let (first, second) = (Certificates::new(), Certificates::new());
    let client = Asking::start(&first, &[&first, &second]).await;
    let authority = first.authority();
    let setup = Setup::default().with("FLARE_HTTP_CLIENT_CA", authority.to_str().unwrap());
    let story = Story::with(setup, Receiver::start().await).await;
    let endpoint = |path: &str, tls: Value| json!({"endpoint": {"url": format!("https://127.0.0.1:{}{path}", client.port), "tls": tls}});
    let one = story.subscribe(endpoint("/first", identity(&first))).await;
    story.subscribe(endpoint("/second", identity(&second))).await;
    let without = story
        .subscribe(json!({"endpoint": {"url": format!("https://127.0.0.1:{}/without", client.port)}}))
        .await;
    for document in 0..20 {
        story.put(document, 1).await;
    }
    until_true("both are told of everything", || client.count() >= 40).await;
    for (path, who) in client.came.lock().unwrap().iter() {
        let expected = if path == "/first" { certificate(&first) } else { certificate(&second) };
        assert!(**who == *expected, "{path} came as another");
    }
    story
        .until_status(&without, "who shows nothing is refused", |status| status["failed"].as_u64() > Some(0))
        .await;
    // The key is nobody's to see, and stays when something else is changed.
    let read = story.api().get(&one).await.expect(200).json();
    assert_eq!(read["endpoint"]["tls"]["key"], "[redacted]");
    assert!(read["endpoint"]["tls"]["certificate"].as_str().unwrap().contains("BEGIN CERTIFICATE"));
    story
        .api()
        .patch(&one, &json!({"endpoint": read["endpoint"], "delivery": {"concurrency": 2}}))
        .await
        .expect(200);
    let before = client.count();
    story.put(1, 2).await;
    until_true("it is told as before", || client.count() >= before + 2).await;
    // What is wrong is named by its field.
    for (tls, words) in [
        (json!({"certificate": "nonsense", "key": "k"}), ["endpoint.tls.certificate", "PEM"]),
        (
            json!({"certificate": identity(&first)["certificate"], "key": "nonsense"}),
            ["endpoint.tls.key", "PEM"],
        ),
        (
            json!({"certificate": identity(&first)["certificate"], "key": identity(&second)["key"]}),
            ["endpoint.tls.key", "not the key of"],
        ),
        (
            json!({"certificate": identity(&first)["certificate"], "key": "[redacted]"}),
            ["endpoint.tls.key", "write it"],
        ),
    ] {
        story.api().post(&story.subscriptions(), &endpoint("/wrong", tls)).await.refused(400, &words);
    }
    let plain = json!({"endpoint": {"url": story.receiver.url("/plain"), "tls": identity(&first)}});
    story.api().post(&story.subscriptions(), &plain).await.refused(400, &["endpoint.tls", "https"]);
}

/// A proxy that asks for a password, and knows one name.
async fn proxy(leads_to: std::net::SocketAddr) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let noted = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let noted = noted.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n")
                    && stream.read_buf(&mut head).await.is_ok_and(|came| came > 0)
                {}
                let head = String::from_utf8_lossy(&head).into_owned();
                noted.lock().unwrap().push(head.clone());
                let knows = head
                    .contains(&format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode("me:hunter22")));
                if !knows || !head.starts_with("CONNECT client.test:80 ") {
                    let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await;
                    return;
                }
                let mut client = TcpStream::connect(leads_to).await.unwrap();
                let _ = stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut client).await;
            });
        }
    });
    (port, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_reached_by_way_of_the_proxy() {
    let receiver = Receiver::start().await;
    let (port, asked) = proxy(receiver.addr()).await;
    let setup = Setup::default()
        .listening_everywhere()
        .with("FLARE_HTTP_CLIENT_PROXY", &format!("http://me:hunter22@127.0.0.1:{port}"));
    let story = Story::with(setup, receiver).await;
    let path = story.subscribe(json!({"endpoint": {"url": "http://client.test/told"}})).await;
    for document in 0..10 {
        story.put(document, 1).await;
    }
    story.settled(&path).await;
    assert_eq!(story.receiver.count(), 10);
    assert_eq!(story.receiver.requests()[0].header("host"), "client.test");
    let tunnels = asked.lock().unwrap().len();
    assert!((1..=10).contains(&tunnels), "connections are kept: {tunnels}");
    let refused = story.subscribe(json!({"endpoint": {"url": "http://other.test/told"}})).await;
    story.put(1, 2).await;
    let status =
        story.until_status(&refused, "it is refused", |status| !status["lastFailure"].is_null()).await;
    let error = status["lastFailure"]["error"].as_str().unwrap();
    assert!(error.contains("http.client.proxy") && error.contains("403"), "{error}");
    // Addresses are judged as ever, and the password is nobody's to see.
    let local = json!({"endpoint": {"url": "http://127.1/told"}});
    story.api().post(&story.subscriptions(), &local).await.refused(400, &["not allowed"]);
    let settings = story.api().get("/ui/settings").await.expect(200);
    assert!(!String::from_utf8_lossy(&settings.body).contains("hunter22"));
    assert_eq!(story.flare.logged("hunter22"), None);
}
