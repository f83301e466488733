//! `cargo xtask bench`: the release binary under the project's workloads, beside a plain client that sends the
//! same requests straight to the sink (`raw`): machines differ and are noisy, the ratio within a run says more.

mod drive;
mod http;
mod postgresql;
mod process;
mod raw;
mod scenarios;
mod sink;
mod tls;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

pub use http::{Connection, find, length};
pub use process::{Flare, build, target};
pub use sink::now;

use drive::{Measured, Workload};
use sink::Sink;
use tls::Identity;

#[derive(clap::Args)]
pub struct Args {
    /// Only these workloads, by letter.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// How many rounds; the median is shown.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A tenth of the work, one round.
    #[arg(long)]
    quick: bool,
    /// This binary instead of building one.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// An earlier binary: each round runs it too, in turns with the other, and its line comes first.
    #[arg(long)]
    before: Option<PathBuf>,
    /// Where Flare keeps everything: its own data directory, or a PostgreSQL server that is started for it.
    #[arg(long, value_enum, default_value_t = Store::Embedded)]
    store: Store,
    /// Then the scenarios: ten thousand subscriptions, a million documents, hanging clients.
    #[arg(long)]
    scenarios: bool,
}

/// Where Flare keeps everything.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Store {
    Embedded,
    Postgresql,
}

const C: Workload = Workload {
    name: "c",
    about: "100 clients",
    subscriptions: 100,
    changes: 1_000,
    distinct: 0,
    rate: 0,
    tls: false,
};

const WORKLOADS: [Workload; 7] = [
    Workload { name: "a", about: "1 client, new documents", subscriptions: 1, changes: 20_000, ..C },
    Workload { name: "b", about: "10 clients", subscriptions: 10, changes: 5_000, ..C },
    C,
    Workload { name: "d", about: "1000 clients", subscriptions: 1_000, changes: 100, ..C },
    Workload {
        name: "e",
        about: "10 clients, 200 changes/s",
        subscriptions: 10,
        changes: 2_000,
        rate: 200,
        ..C
    },
    Workload {
        name: "f",
        about: "10 clients, 15 revisions each",
        subscriptions: 10,
        changes: 1_500,
        distinct: 100,
        ..C
    },
    Workload { name: "g", about: "100 clients over TLS", tls: true, ..C },
];

/// Runs the workloads and prints the table. Driver, plain client and sink share the machine with Flare, so all of it is
/// built as Flare is: a debug build of this program would take most of the processor and measure itself.
pub fn run(args: &Args) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return process::run_optimized();
    }
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => process::build()?,
    };
    let _server = match args.store {
        Store::Embedded => None,
        Store::Postgresql => Some(postgresql::Server::start(&binary)?),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let rounds = if args.quick { 1 } else { args.rounds.max(1) };
    print_header();
    for workload in &WORKLOADS {
        if !args.only.is_empty() && !args.only.iter().any(|name| name == workload.name) {
            continue;
        }
        let workload = if args.quick { workload.tenth() } else { workload.clone() };
        // What TLS costs is seen beside the same without it, in turns: machines differ from one minute to the next.
        let plain = workload.tls.then(|| Workload { tls: false, ..workload.clone() });
        let mut seen = Vec::new();
        let (mut seen_before, mut seen_plain) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            if let Some(plain) = &plain {
                seen_plain.push(runtime.block_on(round(&binary, plain))?);
            }
            if let Some(before) = &args.before {
                seen_before.push(runtime.block_on(round(before, &workload))?);
            }
            seen.push(runtime.block_on(round(&binary, &workload))?);
        }
        let now = median(&workload, seen);
        if args.before.is_some() {
            let before = median(&workload, seen_before);
            print_line(&workload, "before", &before);
            print_line(&workload, "now", &now);
            print_ratio(&workload, &before, &now);
        } else {
            print_line(&workload, workload.about, &now);
        }
        if let Some(plain) = &plain {
            let without = median(plain, seen_plain);
            print_line(plain, "the same without TLS", &without);
            println!(
                "    with TLS to without: cpu {:.3}",
                now.measured.cpu_micros / without.measured.cpu_micros
            );
        }
    }
    if args.scenarios {
        runtime.block_on(scenarios::run(&binary, args.quick))?;
    }
    Ok(())
}

const RAW_CONNECTIONS: usize = 64;
const RAW_REQUESTS: u64 = 100_000;

/// One run of a workload, and what the plain client did beside it.
struct Round {
    measured: Measured,
    raw: f64,
    /// Processor time of the plain client for each request.
    raw_micros: f64,
}

impl Round {
    fn of_raw(&self) -> f64 {
        self.measured.deliveries / self.raw
    }
}

/// The round in the middle by its share of raw, with the middle of all processor times: the two vary for different
/// reasons.
fn median(workload: &Workload, mut rounds: Vec<Round>) -> Round {
    rounds.sort_by(|a, b| a.measured.cpu_micros.total_cmp(&b.measured.cpu_micros));
    let cpu_micros = rounds[rounds.len() / 2].measured.cpu_micros;
    rounds.sort_by(|a, b| a.raw_micros.total_cmp(&b.raw_micros));
    let raw_micros = rounds[rounds.len() / 2].raw_micros;
    if workload.is_paced() {
        rounds.sort_by_key(|round| round.measured.p99);
    } else {
        rounds.sort_by(|a, b| a.of_raw().total_cmp(&b.of_raw()));
    }
    let mut middle = rounds.swap_remove(rounds.len() / 2);
    middle.measured.cpu_micros = cpu_micros;
    middle.raw_micros = raw_micros;
    middle
}

fn print_header() {
    println!(
        "{:<3} {:<30} {:>9} {:>11} {:>7} {:>9} {:>7} {:>8} {:>8} {:>6} {:>5} {:>6} {:>7}",
        "",
        "workload",
        "puts/s",
        "deliver/s",
        "of raw",
        "cpu µs",
        "raw µs",
        "p50 ms",
        "p99 ms",
        "lost",
        "dup",
        "order",
        "peak MB"
    );
}

/// What comes at a pace comes at that pace: there it is how late it is that counts, not how much of raw's deliveries.
fn print_ratio(workload: &Workload, before: &Round, now: &Round) {
    let cpu = now.measured.cpu_micros / before.measured.cpu_micros;
    if workload.is_paced() {
        let p99 = now.measured.p99.as_secs_f64() / before.measured.p99.as_secs_f64();
        println!("    now to before: p99 {p99:.3}, cpu {cpu:.3}");
    } else {
        println!("    now to before: of raw {:.3}, cpu {cpu:.3}", now.of_raw() / before.of_raw());
    }
}

fn print_line(workload: &Workload, what: &str, round: &Round) {
    let measured = &round.measured;
    let of_raw = if workload.is_paced() { "paced".to_owned() } else { format!("{:.2}", round.of_raw()) };
    println!(
        "{:<3} {:<30} {:>9.0} {:>11.0} {of_raw:>7} {:>9.1} {:>7.1} {:>8.2} {:>8.2} {:>6} {:>5} {:>6} {:>7.0}",
        workload.name,
        what,
        measured.puts,
        measured.deliveries,
        measured.cpu_micros,
        round.raw_micros,
        measured.p50.as_secs_f64() * 1e3,
        measured.p99.as_secs_f64() * 1e3,
        measured.lost,
        measured.duplicates,
        measured.out_of_order,
        measured.peak_megabytes,
    );
}

async fn round(binary: &Path, workload: &Workload) -> anyhow::Result<Round> {
    let plain = Sink::start(None).context("starting the sink")?;
    let raw = raw::per_second(&plain.address, RAW_CONNECTIONS, RAW_REQUESTS).await?;
    let raw_micros = raw::micros(&plain.address, RAW_CONNECTIONS, RAW_REQUESTS).await?;
    drop(plain);
    let folder = binary.parent().context("the binary is in a folder")?;
    let identity = workload.tls.then(|| Identity::new(folder)).transpose()?;
    let sink = Sink::start(identity).context("starting the sink")?;
    let authority = sink.identity.as_ref().map(|identity| &*identity.authority);
    let flare = Flare::start_trusting(binary, authority).await?;
    let measured = drive::run(&flare, &sink, workload, Duration::from_secs(120)).await?;
    flare.stop().await?;
    Ok(Round { measured, raw, raw_micros })
}
