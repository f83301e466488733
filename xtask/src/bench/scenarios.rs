//! What is not a matter of deliveries per second: many subscriptions, many documents, clients that hang.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use tokio::net::TcpListener;

use super::drive::{self, Workload};
use super::http::Connection;
use super::process::Flare;
use super::sink::{Sink, now};

/// Runs them all and prints a line or two for each.
pub async fn run(binary: &Path, quick: bool) -> anyhow::Result<()> {
    let scale = if quick { 10 } else { 1 };
    subscriptions(binary, 10_000 / scale).await?;
    documents(binary, 1_000_000 / scale).await?;
    hanging(binary, 20).await
}

fn changes(count: u64) -> Workload {
    Workload { name: "", about: "", subscriptions: 0, changes: count, distinct: 0, rate: 0, tls: false }
}

/// CPU per change of so many changes.
async fn cost_of_changes(flare: &Flare, count: u64) -> anyhow::Result<f64> {
    let cpu = flare.cpu()?;
    drive::send_all(flare, &changes(count), Instant::now(), now()).await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok((flare.cpu()? - cpu).as_secs_f64() * 1e6 / count as f64)
}

async fn subscriptions(binary: &Path, count: u64) -> anyhow::Result<()> {
    const PUTS: u64 = 20_000;
    let flare = Flare::start(binary).await?;
    drive::create_resource(&flare).await?;
    let alone = cost_of_changes(&flare, PUTS).await?;
    flare.stop().await?;

    let flare = Flare::start(binary).await?;
    let path = drive::create_resource(&flare).await?;
    let mut paths = Vec::new();
    for client in 0..count {
        let url = format!("http://127.0.0.1:9/{client}/{{id}}");
        paths.push(drive::create_subscription(&flare, &path, &url).await?);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let cpu = flare.cpu()?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let idle = (flare.cpu()? - cpu).as_secs_f64() / 5.0 * 100.0;
    println!("{count} idle subscriptions: {:.0} MB, {idle:.1} % CPU", flare.megabytes()?);
    let mut connection = Connection::open(&flare.address).await?;
    for path in paths {
        connection.send("POST", &format!("{path}/pause"), "").await?;
    }
    let paused = cost_of_changes(&flare, PUTS).await?;
    println!("a change costs {alone:.1} µs of CPU alone, {paused:.1} µs with {count} paused subscriptions");
    flare.stop().await
}

async fn documents(binary: &Path, count: u64) -> anyhow::Result<()> {
    const SAMPLE: u64 = 20_000;
    let flare = Flare::start(binary).await?;
    drive::create_resource(&flare).await?;
    let created = bulk(&flare, (0..SAMPLE).map(|id| (id, 1))).await?;
    let updated = bulk(&flare, (0..SAMPLE).map(|n| (scatter(n, SAMPLE), 2 + n))).await?;
    bulk(&flare, (SAMPLE..count - SAMPLE).map(|id| (id, 1))).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let created_late = bulk(&flare, (count - SAMPLE..count).map(|id| (id, 1))).await?;
    let updated_late = bulk(&flare, (0..SAMPLE).map(|n| (scatter(n, count), SAMPLE + 2 + n))).await?;
    println!(
        "new documents/s: {created:.0} when empty, {created_late:.0} at {count} ({:.0} %)",
        created_late / created * 100.0
    );
    println!(
        "random updates/s: {updated:.0} when small, {updated_late:.0} at {count} ({:.0} %)",
        updated_late / updated * 100.0
    );
    println!(
        "memory at {count} documents: {:.0} MB, peak {:.0} MB",
        flare.megabytes()?,
        flare.peak_megabytes()?
    );
    let (flare, took) = flare.kill_and_restart(binary).await?;
    println!("ready {:.2} s after kill -9 with {count} documents", took.as_secs_f64());
    flare.stop().await
}

/// Spreads numbers over a range, each once for a while.
fn scatter(n: u64, range: u64) -> u64 {
    n.wrapping_mul(2_654_435_761) % range
}

/// Sends documents as bulk requests on 16 connections; answers how many a second.
async fn bulk(flare: &Flare, documents: impl Iterator<Item = (u64, u64)>) -> anyhow::Result<f64> {
    const BATCH: usize = 2_000;
    let documents: Vec<(u64, u64)> = documents.collect();
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for part in documents.chunks(documents.len().div_ceil(16).max(1)) {
        let (part, address) = (part.to_vec(), flare.address.clone());
        tasks.spawn(async move {
            let mut connection = Connection::open(&address).await?;
            for batch in part.chunks(BATCH) {
                let mut body = String::new();
                for (id, revision) in batch {
                    let document = drive::document(*id, *revision, Duration::ZERO);
                    let _ = writeln!(
                        body,
                        "{{\"id\":\"http://origin.example/documents/{id}\",\"document\":{document}}}"
                    );
                }
                connection.send_and_drain("POST", "/documents", &body).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(documents.len() as f64 / began.elapsed().as_secs_f64())
}

async fn hanging(binary: &Path, clients: u64) -> anyhow::Result<()> {
    let load = Workload { subscriptions: 1, rate: 200, ..changes(2_000) };
    let mut p99 = Vec::new();
    for hang in [0, clients] {
        let (flare, sink) = (Flare::start(binary).await?, Sink::start(None)?);
        let path = drive::create_resource(&flare).await?;
        let mut listeners = Vec::new();
        for client in 0..hang {
            // Connections are taken by the system, and never answered.
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let url = format!("http://{}/{client}/{{id}}", listener.local_addr()?);
            drive::create_subscription(&flare, &path, &url).await?;
            listeners.push(listener);
        }
        drive::create_subscription(&flare, &path, &format!("http://{}/0/{{id}}", sink.address)).await?;
        drive::send_all(&flare, &load, Instant::now(), now()).await?;
        let began = Instant::now();
        while sink.seen(|seen| seen.unique) < load.changes {
            if began.elapsed() > Duration::from_secs(20) {
                bail!("the healthy client did not get everything");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        p99.push(sink.seen(|seen| seen.percentile(0.99)).as_secs_f64() * 1e3);
        drop(listeners);
        flare.stop().await?;
    }
    println!("p99 of a healthy client: {:.2} ms alone, {:.2} ms beside {clients} that hang", p99[0], p99[1]);
    Ok(())
}
