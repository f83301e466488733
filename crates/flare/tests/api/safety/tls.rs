//! TLS of the API: who speaks it, who may, and certificates that are replaced while it runs.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

use crate::support::{Certificates, Flare, OPERATOR, Setup, document_url, minimal_resource, until};

/// Whoever connects.
pub struct Visitor<'c> {
    pub trusts: &'c Certificates,
    pub shows: Option<&'c Certificates>,
    pub speaks: &'static [u8],
    pub version: &'static SupportedProtocolVersion,
}

impl<'c> Visitor<'c> {
    pub fn new(trusts: &'c Certificates) -> Visitor<'c> {
        Visitor { trusts, shows: None, speaks: b"http/1.1", version: &TLS13 }
    }

    async fn connect(&self, addr: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(self.trusts.authority()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[self.version])
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match self.shows {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let certificate = CertificateDer::from_pem_file(own.certificate()).unwrap();
                let key = PrivateKeyDer::from_pem_file(own.key()).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        config.alpn_protocols = vec![self.speaks.to_vec()];
        let stream = TcpStream::connect(addr).await?;
        let name = ServerName::from(Ipv4Addr::LOCALHOST);
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// Asks for a path by HTTP/1.1 and answers the status.
    async fn ask(&self, addr: SocketAddr, path: &str) -> io::Result<u16> {
        let mut stream = self.connect(addr).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {addr}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.ok_or_else(|| io::Error::other(format!("no answer: {answer}")))
    }

    pub async fn multiplex(self, addr: SocketAddr) -> SendRequest<Full<Bytes>> {
        let stream = Visitor { speaks: b"h2", ..self }.connect(addr).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }
}

pub fn with_tls(certificates: &Certificates) -> Setup {
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    Setup::default()
        .with("FLARE_HTTP_SERVER_TLS_CERTIFICATE", &text(certificates.certificate()))
        .with("FLARE_HTTP_SERVER_TLS_KEY", &text(certificates.key()))
}

pub fn request(method: &str, url: &str, origin: Option<&str>, body: String) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(url);
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    request.body(Full::new(body.into())).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_speaks_both_versions_of_tls_and_of_http() {
    let certificates = Certificates::new();
    let flare = with_tls(&certificates).start().await;
    let addr = flare.addr();
    assert!(flare.logged(&format!("https://127.0.0.1:{}/ui", addr.port())).is_some(), "it says where it is");
    for version in [&TLS12, &TLS13] {
        let visitor = Visitor { version, ..Visitor::new(&certificates) };
        assert_eq!(visitor.ask(addr, "/healthz").await.unwrap(), 200);
    }
    let (url, authority) = (format!("https://{addr}"), certificates.authority());
    let status = async |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
        command.args(["status", "--url", &url]).args(more).env_clear();
        tokio::task::spawn_blocking(move || command.output().unwrap().status.code()).await.unwrap()
    };
    assert_eq!(status(&["--ca", authority.to_str().unwrap()]).await, Some(0), "commands speak it too");
    assert_eq!(status(&[]).await, Some(4), "and believe nobody else");
    let stranger = Certificates::new();
    assert!(Visitor::new(&stranger).ask(addr, "/healthz").await.is_err(), "nobody else vouches for it");
    // Whoever speaks plainly gets nothing that could be taken for an answer.
    let plain = flare.api().raw(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await;
    assert!(!plain.contains("HTTP/1.1"), "{plain}");

    let sender = Visitor::new(&certificates).multiplex(addr).await;
    let create = request("POST", &format!("https://{addr}/resources"), None, minimal_resource().to_string());
    assert_eq!(sender.clone().send_request(create).await.unwrap().status(), 201);
    let mut puts = tokio::task::JoinSet::new();
    for id in 0..200 {
        let (mut sender, url) = (sender.clone(), format!("https://{addr}/documents/{}", document_url(id)));
        puts.spawn(async move {
            let put = request("PUT", &url, None, json!({"rev": 1}).to_string());
            sender.ready().await.unwrap();
            sender.send_request(put).await.unwrap().status().as_u16()
        });
    }
    assert!(puts.join_all().await.into_iter().all(|status| status == 202));
    // A page and a name are judged as ever.
    for (url, origin, status) in [
        (format!("https://{addr}/resources"), None, 200),
        (format!("https://{addr}/resources"), Some("https://evil.example"), 403),
        (format!("https://evil.example:{}/resources", addr.port()), None, 421),
        (format!("https://{addr}/nothing"), None, 404),
    ] {
        let asked = request("GET", &url, origin, String::new());
        assert_eq!(sender.clone().send_request(asked).await.unwrap().status(), status, "{url} {origin:?}");
    }
    let listed = request("GET", &format!("https://{addr}/metrics"), None, String::new());
    let metrics =
        sender.clone().send_request(listed).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&metrics).contains("flare_documents"), "a whole answer comes");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_in_over_tls_has_a_cookie_for_nothing_else() {
    let certificates = Certificates::new();
    let flare = with_tls(&certificates).guarded().start().await;
    let mut sender = Visitor::new(&certificates).multiplex(flare.addr()).await;
    let form = Request::post(format!("https://{}/ui/sign-in", flare.addr()));
    let form = form.header("sec-fetch-site", "same-origin");
    let form = form.body(Full::new(format!("token={OPERATOR}").into())).unwrap();
    let answer = sender.send_request(form).await.unwrap();
    assert_eq!(answer.status(), 303);
    let cookie = answer.headers()["set-cookie"].to_str().unwrap();
    for part in ["Secure", "HttpOnly", "SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_multiplexes_and_does_not_read_or_asks_nothing_leaves() {
    let certificates = Certificates::new();
    let flare = with_tls(&certificates)
        .with("FLARE_HTTP_SERVER_TIMEOUT", "300ms")
        .with("FLARE_HTTP_SERVER_HEADER_TIMEOUT", "200ms")
        .start()
        .await;
    let mut idle = Visitor::new(&certificates).multiplex(flare.addr()).await;
    gone(&mut idle, "one that asks nothing").await;
    let mut sender = Visitor::new(&certificates).multiplex(flare.addr()).await;
    let whole = request("GET", &format!("https://{}/openapi.json", flare.addr()), None, String::new());
    // Longer than what may be under way at once.
    let answer = sender.send_request(whole).await.unwrap();
    assert!(answer.headers()["content-length"].to_str().unwrap().parse::<u64>().unwrap() > 65_535);
    gone(&mut sender, "one that does not read").await;
    drop(answer);
    // A handshake that does not go on is not waited for.
    let mut half = TcpStream::connect(flare.addr()).await.unwrap();
    half.write_all(&[22, 3, 1]).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), half.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "it is cut");
    assert_eq!(Visitor::new(&certificates).ask(flare.addr(), "/healthz").await.unwrap(), 200);
}

async fn gone(sender: &mut SendRequest<Full<Bytes>>, who: &str) {
    until(&format!("{who} is gone"), || std::future::ready(sender.is_closed().then_some(()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_has_a_certificate_may_connect_where_one_is_asked_for() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let authority = certificates.authority();
    let setup = with_tls(&certificates).with("FLARE_HTTP_SERVER_TLS_CLIENT_CA", authority.to_str().unwrap());
    let flare = setup.start().await;
    let visitor = |shows| Visitor { shows, ..Visitor::new(&certificates) };
    assert!(visitor(None).ask(flare.addr(), "/healthz").await.is_err(), "not even this is told to others");
    assert!(visitor(Some(&others)).ask(flare.addr(), "/healthz").await.is_err());
    assert_eq!(visitor(Some(&certificates)).ask(flare.addr(), "/healthz").await.unwrap(), 200);
}

fn replace(certificates: &Certificates, with: &Certificates) {
    // By renaming, as whoever renews certificates does; the key first.
    for (from, to) in [(with.key(), certificates.key()), (with.certificate(), certificates.certificate())] {
        let beside = to.with_extension("next");
        std::fs::copy(from, &beside).unwrap();
        std::fs::rename(beside, to).unwrap();
    }
}

async fn until_known_by(flare: &Flare, certificates: &Certificates) {
    until("the certificate is taken up", || async {
        Visitor::new(certificates).ask(flare.addr(), "/healthz").await.ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_replaced_without_a_restart() {
    let (certificates, second, third) = (Certificates::new(), Certificates::new(), Certificates::new());
    let by_signal =
        with_tls(&certificates).with("FLARE_HTTP_SERVER_TLS_RELOAD_INTERVAL", "24h").start().await;
    let first = Certificates::new();
    std::fs::copy(certificates.authority(), first.authority()).unwrap();
    until_known_by(&by_signal, &first).await;
    // One connection stays as it was.
    let old = Visitor::new(&first).multiplex(by_signal.addr()).await;
    replace(&certificates, &second);
    by_signal.signal("HUP");
    until_known_by(&by_signal, &second).await;
    assert!(Visitor::new(&first).ask(by_signal.addr(), "/healthz").await.is_err());
    let asked = request("GET", &format!("https://{}/healthz", by_signal.addr()), None, String::new());
    assert_eq!(old.clone().send_request(asked).await.unwrap().status(), 200);
    std::fs::write(certificates.certificate(), "nonsense").unwrap();
    by_signal.signal("HUP");
    until("it is said", || std::future::ready(by_signal.logged("the former stays"))).await;
    until_known_by(&by_signal, &second).await;
    replace(&certificates, &third);
    let by_itself =
        with_tls(&certificates).with("FLARE_HTTP_SERVER_TLS_RELOAD_INTERVAL", "100ms").start().await;
    replace(&certificates, &second);
    until_known_by(&by_itself, &second).await;
}

#[test]
fn what_cannot_be_used_is_said_before_anything_is_opened() {
    let certificates = Certificates::new();
    let folder = tempfile::tempdir().unwrap();
    let start = |variables: &[(&str, &Path)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
        command.args([
            "start",
            "--addr",
            "127.0.0.1:0",
            "--data",
            folder.path().join("data").to_str().unwrap(),
        ]);
        command.env_clear().envs(variables.iter().copied()).current_dir(folder.path());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    const CERTIFICATE: &str = "FLARE_HTTP_SERVER_TLS_CERTIFICATE";
    const KEY: &str = "FLARE_HTTP_SERVER_TLS_KEY";
    let (certificate, key, authority) =
        (certificates.certificate(), certificates.key(), certificates.authority());
    for (variables, code, word) in [
        (vec![(CERTIFICATE, certificate.as_path())], 3, "http.server.tls.key"),
        (vec![(KEY, key.as_path())], 3, "http.server.tls.certificate"),
        (vec![("FLARE_HTTP_SERVER_TLS_CLIENT_CA", authority.as_path())], 3, "http.server.tls.client-ca"),
        (vec![(CERTIFICATE, certificate.as_path()), (KEY, certificate.as_path())], 4, "http.server.tls.key"),
        (vec![(CERTIFICATE, key.as_path()), (KEY, key.as_path())], 4, "http.server.tls.certificate"),
        (vec![(CERTIFICATE, authority.as_path()), (KEY, key.as_path())], 4, "is not the key of"),
        (vec![(CERTIFICATE, Path::new("/nowhere")), (KEY, key.as_path())], 4, "cannot be read"),
    ] {
        let (ended, said) = start(&variables);
        assert!(ended == Some(code) && said.contains(word), "{word}: {ended:?} {said}");
    }
    assert!(!folder.path().join("data").exists(), "nothing was touched");
}
