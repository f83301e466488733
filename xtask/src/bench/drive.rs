//! The origin: creates a resource and its subscriptions, sends the changes, and waits for them to arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::process::Flare;
use super::sink::{Sink, now};

#[derive(Clone)]
pub struct Workload {
    pub name: &'static str,
    pub about: &'static str,
    pub subscriptions: u64,
    pub changes: u64,
    /// So many documents, each changed again and again; 0: each change is a new document.
    pub distinct: u64,
    /// Changes per second; 0: as fast as they are answered.
    pub rate: u64,
    /// Whether clients speak TLS.
    pub tls: bool,
}

impl Workload {
    /// Changes come at a rate, and not as fast as they are answered.
    pub fn is_paced(&self) -> bool {
        self.rate > 0
    }

    pub fn tenth(&self) -> Workload {
        Workload { changes: (self.changes / 10).max(10), distinct: self.distinct / 10, ..self.clone() }
    }
}

pub struct Measured {
    pub puts: f64,
    pub deliveries: f64,
    pub cpu_micros: f64,
    pub p50: Duration,
    pub p99: Duration,
    pub lost: u64,
    pub duplicates: u64,
    pub out_of_order: u64,
    pub peak_megabytes: f64,
}

const CONNECTIONS: usize = 16;

pub fn document(id: u64, revision: u64, sent: Duration) -> String {
    let pad = "p".repeat(500);
    format!("{{\"docId\":{id},\"rev\":{revision},\"sentAtNs\":{},\"pad\":\"{pad}\"}}", sent.as_nanos())
}

/// Creates the resource of all workloads; answers the path of its subscriptions.
pub async fn create_resource(flare: &Flare) -> anyhow::Result<String> {
    let body = r#"{"endpoint":"http://origin.example/documents/{id}","change":{"field":"rev"}}"#;
    let created = flare.open().await?.send("POST", "/resources", body).await?;
    let resource: serde_json::Value = serde_json::from_slice(&created.body)?;
    Ok(format!("/resources/{}/subscriptions", resource["id"].as_str().context("a resource's id")?))
}

/// Creates a subscription; answers its path.
pub async fn create_subscription(flare: &Flare, path: &str, url: &str) -> anyhow::Result<String> {
    let body = format!(r#"{{"endpoint":{{"url":"{url}"}},"delivery":{{"timeout":"5s"}}}}"#);
    let created = flare.open().await?.send("POST", path, &body).await?;
    if created.status != 201 {
        bail!("creating a subscription: {}", String::from_utf8_lossy(&created.body));
    }
    let subscription: serde_json::Value = serde_json::from_slice(&created.body)?;
    Ok(format!("{path}/{}", subscription["id"].as_str().context("a subscription's id")?))
}

/// One workload, from the first change to the last arrival.
pub async fn run(flare: &Flare, sink: &Sink, load: &Workload, limit: Duration) -> anyhow::Result<Measured> {
    let path = create_resource(flare).await?;
    for client in 0..load.subscriptions {
        create_subscription(flare, &path, &format!("{}/{client}/{{id}}", sink.base())).await?;
    }
    let cpu = flare.cpu()?;
    let (began, began_at) = (Instant::now(), now());
    send_all(flare, load, began, began_at).await?;
    let puts = load.changes as f64 / began.elapsed().as_secs_f64();
    let documents = if load.distinct == 0 { load.changes } else { load.distinct };
    let newest = load.changes.div_ceil(documents);
    let wanted = documents * load.subscriptions;
    let mut arrived = 0;
    while arrived < wanted && began.elapsed() < limit {
        tokio::time::sleep(Duration::from_millis(10)).await;
        // A state-based system may skip revisions; the newest of each document has to arrive.
        arrived = sink.seen(|seen| if load.distinct == 0 { seen.unique } else { seen.at_least(newest) });
    }
    // What is recorded after the last arrival belongs to the cost.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let cpu = flare.cpu()? - cpu;
    let peak_megabytes = flare.peak_megabytes()?;
    Ok(sink.seen(|seen| Measured {
        puts,
        deliveries: seen.unique as f64 / (seen.last - began_at).as_secs_f64(),
        cpu_micros: cpu.as_secs_f64() * 1e6 / seen.unique.max(1) as f64,
        p50: seen.percentile(0.5),
        p99: seen.percentile(0.99),
        lost: wanted - arrived.min(wanted),
        duplicates: seen.duplicates,
        out_of_order: seen.out_of_order,
        peak_megabytes,
    }))
}

pub async fn send_all(
    flare: &Flare,
    load: &Workload,
    began: Instant,
    began_at: Duration,
) -> anyhow::Result<()> {
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (next, load) = (next.clone(), load.clone());
        let mut connection = flare.open().await?;
        tasks.spawn(async move {
            loop {
                let change = next.fetch_add(1, Ordering::Relaxed);
                if change >= load.changes {
                    return anyhow::Ok(());
                }
                // With a rate the clock starts when the change was planned: a stall is not hidden.
                let mut sent = now();
                if load.rate > 0 {
                    let planned = Duration::from_secs_f64(change as f64 / load.rate as f64);
                    tokio::time::sleep_until((began + planned).into()).await;
                    sent = began_at + planned;
                }
                let distinct = if load.distinct == 0 { load.changes } else { load.distinct };
                let (id, revision) = (change % distinct, 1 + change / distinct);
                let path = format!("/documents/http://origin.example/documents/{id}");
                let answer = connection.send("PUT", &path, &document(id, revision, sent)).await?;
                if answer.status != 202 {
                    bail!("a change was answered {}", answer.status);
                }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}
