//! A real OTLP receiver, in Python: gRPC's own server and the published definitions. What it gets can be looked at.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{Certificates, python, until};

/// A running receiver. Dropping it kills it.
pub struct Collector {
    child: Child,
    input: ChildStdin,
    lines: Arc<Mutex<Vec<Value>>>,
    port: u16,
    protocol: &'static str,
    scheme: &'static str,
}

impl Collector {
    /// One that takes everything, on a free port. `None` where the libraries are not installed.
    pub async fn start(protocol: &'static str) -> Option<Collector> {
        Collector::start_on(protocol, 0).await
    }

    /// One that speaks TLS, and shows this certificate.
    pub async fn start_with(protocol: &'static str, certificates: &Certificates) -> Option<Collector> {
        Collector::begin(protocol, 0, Some(certificates)).await
    }

    /// One on a port that the test chose.
    pub async fn start_on(protocol: &'static str, port: u16) -> Option<Collector> {
        Collector::begin(protocol, port, None).await
    }

    async fn begin(
        protocol: &'static str,
        port: u16,
        certificates: Option<&Certificates>,
    ) -> Option<Collector> {
        let mut child = Command::new(python::installed()?)
            .args(["-c", include_str!("collector.py"), protocol, &port.to_string()])
            .args(certificates.into_iter().flat_map(|own| [own.certificate(), own.key()]))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python runs");
        let input = child.stdin.take().expect("it was piped");
        let output = child.stdout.take().expect("it was piped");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let scheme = if certificates.is_some() { "https" } else { "http" };
        let seen = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("a line of JSON");
                seen.lock().expect("no reader panics").push(line);
            }
        });
        let mut collector = Collector { child, input, lines, port, protocol, scheme };
        let ready =
            collector.until("the receiver is ready", |lines| of(lines, "ready").first().cloned()).await;
        collector.port = ready["port"].as_u64().and_then(|port| port.try_into().ok()).expect("a port");
        Some(collector)
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    /// `grpc` or `http/protobuf`.
    pub fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// From now on it answers so: `take`, `partly`, `later`, `no-traces` (later, for those), `never`,
    /// `hang`.
    pub async fn mode(&mut self, mode: &str) {
        let before = self.seen("mode").len();
        writeln!(self.input, "{mode}").expect("the receiver reads");
        self.until("the receiver answers otherwise", |lines| of(lines, "mode").get(before).cloned()).await;
    }

    /// Waits until `look` finds something in what came so far.
    pub async fn until<T>(&self, what: &str, look: impl Fn(&[Value]) -> Option<T>) -> T {
        until(what, || std::future::ready(look(&self.lines.lock().expect("no reader panics")))).await
    }

    /// Waits for so many spans, and answers all there are.
    pub async fn spans(&self, count: usize) -> Vec<Value> {
        let what = format!("the receiver has {count} spans");
        self.until(&what, |lines| Some(of(lines, "span")).filter(|spans| spans.len() >= count)).await
    }

    /// What came so far, of a kind: `span`, `metric` or `refused`.
    pub fn seen(&self, kind: &str) -> Vec<Value> {
        of(&self.lines.lock().expect("no reader panics"), kind)
    }
}

fn of(lines: &[Value], kind: &str) -> Vec<Value> {
    lines.iter().filter(|line| line["kind"] == kind).cloned().collect()
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
