//! `flare-sim`: seeds come in, schedules are played on all cores, and the seeds that broke a promise go out, each with how
//! to repeat it.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use flare_sim::{Nodes, Report, run_probed, run_with};

#[derive(Parser)]
#[command(about = "Plays schedules of operations and faults against whole nodes, each from a seed")]
struct Args {
    /// How many schedules.
    #[arg(long, default_value_t = 1000)]
    schedules: u64,
    /// The seed of the first.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// This seed alone.
    #[arg(long)]
    seed: Option<u64>,
    /// Print the whole schedule.
    #[arg(long)]
    trace: bool,
    /// Play each twice, and compare the traces.
    #[arg(long)]
    twice: bool,
    /// Hold what Flare says of clients against what they have recorded, too.
    #[arg(long)]
    truth: bool,
    /// So many nodes, which are a cluster if they are several; without it the seed says.
    #[arg(long)]
    nodes: Option<usize>,
    /// How many at once; without it, one for each core.
    #[arg(long)]
    jobs: Option<usize>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(seed) = args.seed {
        return one(&args, seed);
    }
    many(&args)
}

fn played(args: &Args, seed: u64, trace: bool) -> Report {
    match args.truth {
        true => run_probed(seed, trace),
        false => run_with(seed, trace, args.nodes.map_or(Nodes::Drawn, Nodes::These)),
    }
}

fn one(args: &Args, seed: u64) -> ExitCode {
    let report = played(args, seed, args.trace);
    report.trace.iter().for_each(|line| println!("{line}"));
    tell(seed, &report);
    if report.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tell(seed: u64, report: &Report) {
    for what in &report.wrong {
        println!("seed {seed}: {what}");
    }
}

#[expect(clippy::disallowed_methods, reason = "the time that all of it takes is for people to read")]
fn many(args: &Args) -> ExitCode {
    let began = Instant::now();
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from));
    let next = AtomicU64::new(args.from);
    let [requests, crashes, clusters, late] = [0; 4].map(AtomicU64::new);
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= args.from + args.schedules {
                return;
            }
            let mut report = played(args, seed, args.twice);
            if args.twice {
                report.wrong.extend(difference(&report.trace, &played(args, seed, true).trace));
            }
            requests.fetch_add(report.requests, Ordering::Relaxed);
            crashes.fetch_add(report.crashes, Ordering::Relaxed);
            clusters.fetch_add(u64::from(report.nodes > 1), Ordering::Relaxed);
            late.fetch_add(report.late, Ordering::Relaxed);
            if !report.wrong.is_empty() {
                let mut failed = failed.lock().expect("nobody panics while telling");
                tell(seed, &report);
                let truth = if args.truth { " --truth" } else { "" };
                let nodes = args.nodes.map(|nodes| format!(" --nodes {nodes}")).unwrap_or_default();
                println!("again: cargo run --release -p flare-sim -- --seed {seed} --trace{truth}{nodes}");
                failed.push(seed);
            }
        }
    };
    std::thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().expect("nobody panics while telling");
    println!(
        "{} schedules, {} of them of clusters, {} requests, {} of them late, {} crashes in {:.1} s: {}",
        args.schedules,
        clusters.into_inner(),
        requests.into_inner(),
        late.into_inner(),
        crashes.into_inner(),
        began.elapsed().as_secs_f64(),
        if failed.is_empty() {
            "no promise broken".into()
        } else {
            format!("{} broke a promise", failed.len())
        },
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Where two traces part.
fn difference(one: &[String], other: &[String]) -> Option<String> {
    let at = one.iter().zip(other).position(|(one, other)| one != other);
    let at = at.or_else(|| (one.len() != other.len()).then(|| one.len().min(other.len())))?;
    let line = |trace: &[String]| trace.get(at).cloned().unwrap_or_default();
    Some(format!("two plays of it part in line {at}:\n  {}\n  {}", line(one), line(other)))
}
