//! The emulators, one process of each for all tests of this program, and a voice of our own to speak to them, which shares nothing
//! with the engine.

use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use flare_aws::{Aws, AwsConfig, Environment};
use flare_model::time::Timestamp;
use flare_provider::conformance::bridge::fixture::{LOOK, within};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Where `cargo xtask test` installs them.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-python/bin/python3");

/// Ends the program when its standard input does: with this process, however that ends.
const KEEPER: &str = "import os, sys, threading; \
                      threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start(); ";

/// Behaviours that move more messages than moto does in a minute.
const TOO_MUCH_FOR_MOTO: [&str; 2] = [
    "sqs_source_on_moto::reading::large_batches_come_whole",
    "sqs_sink_on_moto::trouble::nothing_delivered_is_missing_when_connections_break",
];

/// An emulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emulator {
    Ministack,
    Moto,
}

struct Running {
    address: String,
    _child: Child,
}

impl Emulator {
    /// Where it listens, once it answers. Nothing where it is not installed, which was said.
    pub async fn address(self) -> Option<&'static str> {
        static MINISTACK: OnceLock<Option<Running>> = OnceLock::new();
        static MOTO: OnceLock<Option<Running>> = OnceLock::new();
        let running = match self {
            Emulator::Ministack => &MINISTACK,
            Emulator::Moto => &MOTO,
        };
        let address = running.get_or_init(|| self.start()).as_ref()?.address.as_str();
        let ready = async {
            while !matches!(call(address, "AmazonSQS.ListQueues", &json!({})).await, Some((200, _))) {
                tokio::time::sleep(LOOK).await;
            }
        };
        within(ready, "the emulator answers").await;
        Some(address)
    }

    /// Whether the test that asks is one that it cannot show. Tests run on threads of their names.
    pub fn cannot_show_this(self) -> bool {
        let test = std::thread::current();
        self == Emulator::Moto && test.name().is_some_and(|name| TOO_MUCH_FOR_MOTO.contains(&name))
    }

    fn start(self) -> Option<Running> {
        let program = match self {
            Emulator::Ministack => "ministack",
            Emulator::Moto => "moto_server",
        };
        if !Path::new(PYTHON).with_file_name(program).exists() {
            left_out(&format!("SQS and Kinesis on {program}: `cargo xtask test` installs it"));
            return None;
        }
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let run = match self {
            Emulator::Ministack => "from ministack.app import main; main()".to_owned(),
            Emulator::Moto => {
                format!("from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])")
            }
        };
        let mut command = Command::new(PYTHON);
        command.args(["-c", &format!("{KEEPER}{run}")]);
        // Without the first it would listen to everybody.
        command.env("BIND_HOST", "127.0.0.1").env("GATEWAY_PORT", port.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("Python runs");
        Some(Running { address: format!("127.0.0.1:{port}"), _child: child })
    }
}

/// The engine, at this address.
pub fn engine(address: &str, owner: &str) -> Aws {
    let tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let config = AwsConfig {
        region: Some("us-east-1".to_owned()),
        endpoint: Some(format!("http://{address}")),
        access_key_id: Some("test".to_owned()),
        secret_access_key: Some("test".to_owned()),
        owner: owner.to_owned(),
        tls: Arc::new(tls),
        timeout: Duration::from_secs(10),
        environment: Environment::default(),
        now: Arc::new(now),
    };
    Aws::new(config).expect("the configuration is right")
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("it is after 1970");
    Timestamp::from_millis(since.as_millis() as i64)
}

/// A name that nothing else has.
pub fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("t{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Does an operation of an emulator, which has to work.
pub async fn does(address: &str, target: &str, input: Value) -> Value {
    match call(address, target, &input).await {
        Some((200, answer)) => answer,
        other => panic!("{target}: {other:?}"),
    }
}

/// Asks, and answers the status and what came; nothing where nobody answered.
pub async fn call(address: &str, target: &str, input: &Value) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let (service, version) =
        if target.starts_with("AmazonSQS") { ("sqs", "1.0") } else { ("kinesis", "1.1") };
    let body = input.to_string();
    let scope = format!("test/20260101/us-east-1/{service}/aws4_request");
    let head = format!(
        "POST / HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/x-amz-json-{version}\r\nx-amz-target: {target}\r\n\
         authorization: AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(body.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.ok()?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let status = std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()?;
    Some((status, serde_json::from_slice(&answer[end + 4..]).unwrap_or_default()))
}

/// Something cannot be tested on this machine: a failure in CI, elsewhere a line that `cargo xtask test` closes with.
fn left_out(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "in CI nothing may be left out: {why}");
    eprintln!("LEFT OUT: {why}");
    if let Some(list) = std::env::var_os("FLARE_TEST_LEFT_OUT") {
        let list = std::fs::OpenOptions::new().create(true).append(true).open(list);
        let noted = list.and_then(|mut list| list.write_all(format!("{why}\n").as_bytes()));
        noted.expect("what was left out is noted");
    }
}
