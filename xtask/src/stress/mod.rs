//! `cargo xtask stress`: the real binary with tiny limits under random operations, clients that misbehave, kills and
//! clocks that jump; at the end every client has what the origin said, and on the way no promise was broken.
//!
//! Everything follows from the seed as far as a real process allows: the configuration (`limits.rs`), the operations
//! (`operate/`), how each client answers its requests in the order in which they come. What the clients were told and may
//! expect is in `memory.rs` and `pair.rs`, what has to hold at the end in `verify.rs`; what a subscription asks for, what
//! origins said, and what a client can be taken to have is in `flare-promises`, which `flare-sim` shares.

mod api;
mod client;
mod connection;
mod finish;
mod limits;
mod memory;
mod node;
mod operate;
mod pair;
mod revisions;
mod run;
mod stage;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use flare_promises::{beliefs, dice, mood, told, wish, world};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use connection::Connection;
use run::Report;

#[derive(clap::Args)]
pub struct Args {
    /// How many seeds.
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Begin no further seed after so many minutes.
    #[arg(long)]
    minutes: Option<u64>,
    /// How many run side by side; without it, one for each core.
    #[arg(long)]
    jobs: Option<usize>,
    /// With a release build of Flare.
    #[arg(long)]
    release: bool,
    /// What Flare logs.
    #[arg(long, default_value = "info")]
    log: String,
    /// Use this binary of Flare instead of building one, and the audit that was built before.
    #[arg(long)]
    binary: Option<PathBuf>,
}

impl Args {
    /// So many seeds from the first one, and all else as it is when nothing is said.
    pub fn of_seeds(seeds: u64) -> Args {
        Args { seeds, from: 1, minutes: None, jobs: None, release: false, log: "info".into(), binary: None }
    }
}

/// Runs the seeds, and fails if one does.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let binary = std::path::absolute(args.binary.clone().map_or_else(|| build(args.release), Ok)?)?;
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(jobs + 1).enable_all().build()?;
    let until = args.minutes.map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    let seeds: Vec<u64> = (args.from..args.from + args.seeds).collect();
    let failed = runtime.block_on(all(&binary, &args.log, seeds, jobs, until))?;
    if failed.is_empty() {
        return Ok(());
    }
    for seed in &failed {
        println!("again: cargo xtask stress --from {seed} --seeds 1");
    }
    bail!("{} of the seeds failed: {failed:?}", failed.len())
}

async fn all(
    binary: &Path,
    log: &str,
    seeds: Vec<u64>,
    jobs: usize,
    until: Option<Instant>,
) -> anyhow::Result<Vec<u64>> {
    let (began, room) = (Instant::now(), Arc::new(Semaphore::new(jobs)));
    let (mut running, mut failed, mut total) = (JoinSet::new(), Vec::new(), Report::default());
    let mut seeds = seeds.into_iter();
    loop {
        tokio::select! {
            permit = room.clone().acquire_owned() => {
                let permit = permit.context("the room is never closed")?;
                let late = until.is_some_and(|until| Instant::now() > until);
                let Some(seed) = seeds.next().filter(|_| !late) else { break };
                let (binary, log) = (binary.to_owned(), log.to_owned());
                running.spawn(async move {
                    let report = run::seed(&binary, &log, seed).await;
                    drop(permit);
                    (seed, report)
                });
            }
            Some(done) = running.join_next() => note(done?, &mut failed, &mut total),
        }
    }
    while let Some(done) = running.join_next().await {
        note(done?, &mut failed, &mut total);
    }
    failed.sort_unstable();
    let Report { seeds, operations, requests, kills, .. } = total;
    let seconds = began.elapsed().as_secs_f64();
    println!("{seeds} seeds, {operations} operations, {requests} requests, {kills} kills in {seconds:.0} s");
    Ok(failed)
}

/// One line for a seed that went well, and all there is to say of one that did not.
fn note((seed, report): (u64, Report), failed: &mut Vec<u64>, total: &mut Report) {
    let Report { operations, requests, kills, time, .. } = report;
    println!(
        "seed {seed}: {operations} operations, {requests} requests, {kills} kills, {:.1} s",
        time.as_secs_f64()
    );
    total.add(&report);
    if !report.wrong.is_empty() {
        failed.push(seed);
        println!("seed {seed} FAILED; its data and logs are in {}", run::folder(seed).display());
        for what in &report.wrong {
            println!("{what}");
        }
    }
}

/// Builds Flare, and the audit of its store beside it, and says where it is.
fn build(release: bool) -> anyhow::Result<PathBuf> {
    for what in [&["flare"][..], &["flare-embedded", "--example", "audit"]] {
        let mut command = std::process::Command::new(env!("CARGO"));
        command.args(["build", "--quiet", "--package"]).args(what);
        // The audit looks once at a small store.
        if release && what[0] == "flare" {
            command.arg("--release");
        }
        if !command.status().context("building flare")?.success() {
            bail!("flare does not build");
        }
    }
    Ok(crate::bench::target()?.join(if release { "release/flare" } else { "debug/flare" }))
}

/// What looks through a store that is closed.
fn audit_program() -> anyhow::Result<PathBuf> {
    Ok(crate::bench::target()?.join("debug/examples/audit"))
}
