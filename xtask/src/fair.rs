//! `cargo xtask fair`: clients that hang or are slow beside one that answers at once, on its host or on others; how late
//! the quick one is told, and how much the slow ones still get. About two minutes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::bench::{Connection, Flare, build, find, length, now};

#[derive(clap::Args)]
pub struct Args {
    /// This binary instead of building one.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Only the scenarios whose name has this in it.
    #[arg(long)]
    only: Option<String>,
}

/// Connections to one host, as configured by default.
const CONNECTIONS: f64 = 64.0;

/// Changes for the quick client in a second.
const RATE: u32 = 10;

struct Scenario {
    name: &'static str,
    slow: usize,
    /// How long they take; nothing: for ever.
    takes: Option<Duration>,
    /// Whether each has a host of its own, where nobody is.
    dead: bool,
    lasts: Duration,
    /// How late the quick client may be told, of a hundred changes of ninety-nine.
    bound: Duration,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "20 hang",
        slow: 20,
        takes: None,
        dead: false,
        lasts: Duration::from_secs(40),
        bound: Duration::from_millis(100),
    },
    Scenario {
        name: "20 take 8 s",
        slow: 20,
        takes: Some(Duration::from_secs(8)),
        dead: false,
        lasts: Duration::from_secs(40),
        bound: Duration::from_millis(100),
    },
    Scenario {
        name: "200 take 1 s",
        slow: 200,
        takes: Some(Duration::from_secs(1)),
        dead: false,
        lasts: Duration::from_secs(20),
        bound: Duration::from_millis(100),
    },
    Scenario {
        name: "49 dead hosts",
        slow: 49,
        takes: None,
        dead: true,
        lasts: Duration::from_secs(20),
        bound: Duration::from_millis(50),
    },
];

/// Runs the scenarios and prints what came of them.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => build()?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    println!(
        "{:<15} {:>8} {:>8} {:>8} {:>8} {:>9} {:>10}",
        "beside", "p50 ms", "p99 ms", "max ms", "missing", "slow/s", "of 64"
    );
    let mut broken = Vec::new();
    for scenario in &SCENARIOS {
        if args.only.as_ref().is_some_and(|only| !scenario.name.contains(only.as_str())) {
            continue;
        }
        let kept = runtime.block_on(scenario.run(&binary)).with_context(|| scenario.name)?;
        broken.extend((!kept).then_some(scenario.name));
    }
    if broken.is_empty() { Ok(()) } else { bail!("out of bounds: {}", broken.join(", ")) }
}

/// What the clients have got.
#[derive(Default)]
struct Got {
    /// How late the quick one was told, each time.
    late: Vec<Duration>,
    /// Requests that the slow ones have answered.
    slow: usize,
}

impl Scenario {
    /// Answers whether it kept within its bounds.
    async fn run(&self, binary: &Path) -> anyhow::Result<bool> {
        let got: Arc<Mutex<Got>> = Arc::default();
        let host = serve(self.takes, got.clone()).await?;
        let flare = Flare::start(binary).await?;
        let mut origin = Connection::open(&flare.address).await?;
        let quick = resource(&mut origin, "quick").await?;
        subscribe(&mut origin, &quick, &format!("http://{host}/quick")).await?;
        // It is known before the others come.
        put(&mut origin, "quick", 0, now()).await?;
        let told = async {
            while got.lock().is_ok_and(|got| got.late.is_empty()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), told).await.context("the first change")?;
        let slow = resource(&mut origin, "slow").await?;
        let mut silent = Vec::new();
        for number in 0..self.slow {
            let url = match self.dead {
                false => format!("http://{host}/slow/{number}"),
                true => format!("http://{}/", dead_host(number, &mut silent).await?),
            };
            subscribe(&mut origin, &slow, &url).await?;
        }
        for document in 0..100 {
            put(&mut origin, "slow", document, now()).await?;
        }
        let (began, began_at) = (Instant::now(), now());
        got.lock().expect("nobody panics").late.clear();
        let changes = RATE * self.lasts.as_secs() as u32;
        for change in 0..changes {
            let planned = Duration::from_secs(1) * change / RATE;
            tokio::time::sleep_until((began + planned).into()).await;
            put(&mut origin, "quick", 1 + u64::from(change), began_at + planned).await?;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let answered = got.lock().expect("nobody panics").slow as f64 / began.elapsed().as_secs_f64();
        flare.kill().await?;
        let mut got = std::mem::take(&mut *got.lock().expect("nobody panics"));
        Ok(self.print(&mut got.late, changes as usize, answered))
    }

    fn print(&self, late: &mut [Duration], changes: usize, answered: f64) -> bool {
        late.sort();
        let at = |share: f64| late.get(((changes as f64 * share).ceil() as usize).saturating_sub(1)).copied();
        let millis = |late: Option<Duration>| {
            late.map_or_else(|| "never".to_owned(), |late| format!("{:.1}", late.as_secs_f64() * 1e3))
        };
        // What 64 connections give when nobody else has any.
        let all = self.takes.map(|takes| answered / (CONNECTIONS / takes.as_secs_f64()));
        println!(
            "{:<15} {:>8} {:>8} {:>8} {:>8} {answered:>9.1} {:>10}",
            self.name,
            millis(at(0.5)),
            millis(at(0.99)),
            millis(late.last().copied()),
            changes.saturating_sub(late.len()),
            all.map_or_else(|| "-".to_owned(), |all| format!("{all:.2}")),
        );
        at(0.99).is_some_and(|p99| p99 <= self.bound)
    }
}

/// One that refuses, or one that takes connections and says nothing.
async fn dead_host(number: usize, silent: &mut Vec<TcpListener>) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    if number.is_multiple_of(2) {
        silent.push(listener);
    }
    Ok(address)
}

async fn resource(origin: &mut Connection, name: &str) -> anyhow::Result<String> {
    let body = format!(r#"{{"endpoint":"http://origin.example/{name}/{{id}}","change":{{"field":"rev"}}}}"#);
    let created = origin.send("POST", "/resources", &body).await?;
    let resource: serde_json::Value = serde_json::from_slice(&created.body)?;
    Ok(format!("/resources/{}/subscriptions", resource["id"].as_str().context("a resource's id")?))
}

async fn subscribe(origin: &mut Connection, path: &str, url: &str) -> anyhow::Result<()> {
    let created = origin.send("POST", path, &format!(r#"{{"endpoint":{{"url":"{url}"}}}}"#)).await?;
    if created.status != 201 {
        bail!("creating a subscription: {}", String::from_utf8_lossy(&created.body));
    }
    Ok(())
}

async fn put(origin: &mut Connection, name: &str, id: u64, sent: Duration) -> anyhow::Result<()> {
    let path = format!("/documents/http://origin.example/{name}/{id}");
    let body = format!(r#"{{"rev":1,"sentAtNs":{}}}"#, sent.as_nanos());
    match origin.send("PUT", &path, &body).await?.status {
        202 => Ok(()),
        status => bail!("a change was answered {status}"),
    }
}

/// The host of all clients: `/quick` answers at once, the others when they are done.
async fn serve(takes: Option<Duration>, got: Arc<Mutex<Got>>) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(answer(stream, takes, got.clone()));
        }
    });
    Ok(address)
}

async fn answer(mut stream: TcpStream, takes: Option<Duration>, got: Arc<Mutex<Got>>) {
    let mut buffer = Vec::with_capacity(4096);
    loop {
        while let Some(head) = find(&buffer, b"\r\n\r\n") {
            let Ok(text) = std::str::from_utf8(&buffer[..head]) else { return };
            let end = head + 4 + length(text).unwrap_or(0);
            if buffer.len() < end {
                break;
            }
            let quick = text.split(' ').nth(1) == Some("/quick");
            if quick {
                let late = now().saturating_sub(sent_at(&buffer[head + 4..end]));
                got.lock().expect("nobody panics").late.push(late);
            } else {
                match takes {
                    Some(takes) => tokio::time::sleep(takes).await,
                    None => std::future::pending().await,
                }
                got.lock().expect("nobody panics").slow += 1;
            }
            buffer.drain(..end);
            if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.is_err() {
                return;
            }
        }
        if !stream.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
            return;
        }
    }
}

fn sent_at(body: &[u8]) -> Duration {
    let name = b"\"sentAtNs\":";
    let Some(at) = find(body, name) else { return Duration::ZERO };
    let digits = body[at + name.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    Duration::from_nanos(digits.fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
}
