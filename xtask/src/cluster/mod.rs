//! `cargo xtask cluster`: several real nodes in network namespaces on a real PostgreSQL, coordinated by it or by three members of etcd.
//! An origin speaks to any of them all the time, clients keep accounts of every request, and each round something is done to the
//! cluster. In: how many, and a seed. Out: how long units took to run elsewhere, and whether a promise was broken.
//!
//! The process that is started makes the network and removes it; what is tried is tried by a second one, inside of the network.

mod account;
mod clients;
mod event;
mod measure;
mod network;
mod node;
mod origin;
mod round;
mod servers;
mod stage;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use flare_promises::dice::Dice;

use clients::Manners;
use event::{Coordinator, Event};
use network::{Network, Place};
use origin::Origin;
use round::Round;
use stage::{Stage, Wanted};

#[derive(Clone, clap::Args)]
pub struct Args {
    /// How many nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=5))]
    nodes: u8,
    /// How many subscriptions.
    #[arg(long, default_value_t = 100)]
    subscriptions: usize,
    /// How many rounds, each with one thing that is done to the cluster.
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Where nodes find each other.
    #[arg(long, value_enum, default_value_t = Coordinator::Postgresql)]
    coordinator: Coordinator,
    /// What is done, and when, follows from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Changes in a second.
    #[arg(long, default_value_t = 40)]
    rate: u32,
    /// Measure how units spread and how late changes are told, instead of doing harm.
    #[arg(long)]
    measure: bool,
    /// Only rounds of this kind, by a part of its words.
    #[arg(long)]
    only: Option<String>,
    /// Use this binary of Flare instead of building one.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// With a release build of Flare.
    #[arg(long)]
    release: bool,
    /// What Flare logs.
    #[arg(long, default_value = "info")]
    log: String,
    /// The process that made the network; for this program itself.
    #[arg(long, hide = true)]
    inside: Option<u32>,
}

impl Args {
    /// The same as words of a command line.
    fn words(&self) -> Vec<String> {
        let coordinator = match self.coordinator {
            Coordinator::Postgresql => "postgresql",
            Coordinator::Etcd => "etcd",
        };
        let mut words: Vec<String> = [
            ("--nodes", self.nodes.to_string()),
            ("--subscriptions", self.subscriptions.to_string()),
            ("--rounds", self.rounds.to_string()),
            ("--coordinator", coordinator.to_owned()),
            ("--seed", self.seed.to_string()),
            ("--rate", self.rate.to_string()),
            ("--log", self.log.clone()),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect();
        words.extend(self.only.iter().flat_map(|only| ["--only".to_owned(), only.clone()]));
        words.extend(self.measure.then(|| "--measure".to_owned()));
        words
    }
}

/// How long clients may take to have everything when nothing is done any more.
const CONVERGES: Duration = Duration::from_secs(60);

/// Runs it, and fails if a promise was broken.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match args.inside {
        Some(maker) => runtime.block_on(inside(args, maker)),
        None => runtime.block_on(outside(args)),
    }
}

/// Whether this machine and this user can do it; if not, why.
pub fn is_possible() -> Result<(), String> {
    if !network::is_permitted() {
        return Err("network namespaces need root".to_owned());
    }
    let ip = std::process::Command::new("ip").arg("-V").output();
    ip.map(drop).map_err(|_| "there is no ip (package iproute2)".to_owned())
}

async fn outside(args: &Args) -> anyhow::Result<()> {
    if let Err(why) = is_possible() {
        bail!("a cluster in network namespaces cannot be made here: {why}");
    }
    let binary = match &args.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => build(args.release)?,
    };
    let maker = std::process::id();
    // With room for one that joins.
    let network = Network::of(maker, usize::from(args.nodes) + 1);
    let ended = match network.build() {
        Ok(()) => within(args, &network, maker, &binary).await,
        Err(error) => Err(error),
    };
    network.remove();
    if !ended?.success() {
        bail!("the cluster did not keep its promises");
    }
    Ok(())
}

/// This program again, inside of the network, until it ends or somebody has had enough.
async fn within(args: &Args, network: &Network, maker: u32, binary: &Path) -> anyhow::Result<ExitStatus> {
    let mut command = network.command(Place::Hub, &std::env::current_exe()?.display().to_string());
    command.arg("cluster").args(args.words());
    command.args(["--inside", &maker.to_string(), "--binary"]).arg(binary);
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
    tokio::select! {
        status = child.wait() => Ok(status?),
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
}

async fn inside(args: &Args, maker: u32) -> anyhow::Result<()> {
    let network = Network::of(maker, usize::from(args.nodes) + 1);
    let folder = std::env::temp_dir().join(format!("flare-cluster-{maker}"));
    std::fs::create_dir_all(&folder)?;
    let tried = match args.measure {
        true => measure::run(args, &network, &folder).await,
        false => trial(args, &network, &folder).await,
    };
    match &tried {
        Ok(()) => drop(std::fs::remove_dir_all(&folder)),
        Err(_) => println!("logs are in {}", folder.display()),
    }
    tried
}

fn wanted(args: &Args) -> anyhow::Result<Wanted> {
    Ok(Wanted {
        nodes: usize::from(args.nodes),
        subscriptions: args.subscriptions,
        coordinator: args.coordinator,
        binary: args.binary.clone().context("the binary is given inside")?,
        log: args.log.clone(),
        more: Vec::new(),
    })
}

async fn trial(args: &Args, network: &Network, folder: &Path) -> anyhow::Result<()> {
    let dice = Dice::new(args.seed);
    let (mut draw, began) = (dice.fork(2), Instant::now());
    let mut stage = Stage::set(network, folder, &wanted(args)?, &dice).await?;
    println!("{} nodes, {} subscriptions, seed {}", args.nodes, args.subscriptions, args.seed);
    println!("{:<26} {:<8} {:>7} {:>7} {:>9} {:>11}", "done", "to", "s", "bound", "repeated", "late/said");
    let mut origin = stage.origin(args.rate, &dice.fork(3));
    let mut broken = Vec::new();
    for number in 1..=args.rounds {
        let fits = |event: Event| args.only.as_ref().is_none_or(|only| event.words().contains(only.as_str()));
        let event = loop {
            let event = Event::draw(&mut draw, args.coordinator, stage.store.has_standby());
            if fits(event) {
                break event;
            }
        };
        // Something is under way whenever it happens.
        tokio::time::sleep(Duration::from_millis(draw.between(200, 1_500))).await;
        let round = Round::play(&mut stage, event, args.coordinator, &mut draw).await?;
        print(&round);
        broken.extend(round.wrong.iter().map(|wrong| format!("round {number}, {}: {wrong}", event.words())));
    }
    let accepted = origin.be_still().await;
    stage.clients.shared.behave(Manners { fails: 0, dawdles: Duration::ZERO });
    broken.extend(verify(&stage, &origin).await?);
    let (requests, repeated) = {
        let accounts = stage.clients.accounts();
        (accounts.requests, accounts.repeated)
    };
    println!(
        "{accepted} changes accepted, {requests} requests, {repeated} of them repeated, {:.0} s",
        began.elapsed().as_secs_f64()
    );
    for what in &broken {
        println!("BROKEN {what}");
    }
    if !broken.is_empty() {
        bail!("{} findings with seed {}", broken.len(), args.seed);
    }
    Ok(())
}

fn print(round: &Round) {
    let seconds = |took: Duration| format!("{:.2}", took.as_secs_f64());
    let late = round.late.map_or_else(|| "-".to_owned(), |(seen, counted)| format!("{seen}/{counted}"));
    println!(
        "{:<26} {:<8} {:>7} {:>7} {:>9} {:>11} {}",
        round.event.words(),
        round.node.as_deref().unwrap_or("-"),
        round.took.map_or_else(|| "never".to_owned(), seconds),
        seconds(round.bound),
        round.repeated,
        late,
        if round.wrong.is_empty() { "" } else { "BROKEN" },
    );
}

/// What has to hold when nothing is done any more.
async fn verify(stage: &Stage, origin: &Origin) -> anyhow::Result<Vec<String>> {
    let began = Instant::now();
    let lacking = loop {
        let lacking = lacking(stage, origin);
        if lacking.is_empty() || began.elapsed() > CONVERGES {
            break lacking;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let mut broken: Vec<String> = lacking.into_iter().take(10).collect();
    let fallen = stage.store.ask("SELECT count(*) FROM watch.fallen")?;
    if fallen != "0" {
        broken.push(format!("{fallen} writes of feeds were accepted under an epoch that had passed"));
    }
    let accounts = stage.clients.accounts();
    broken.extend(accounts.wrong.iter().cloned());
    if accounts.wrongs > accounts.wrong.len() as u64 {
        broken.push(format!("{} findings of clients in all", accounts.wrongs));
    }
    Ok(broken)
}

/// Clients that do not have what the origin said.
fn lacking(stage: &Stage, origin: &Origin) -> Vec<String> {
    let accounts = stage.clients.accounts();
    let clients = (0..stage.subscriptions).filter_map(|client| {
        let (has, truth) = (accounts.state(client), origin.truth(stage.resource_of(client)));
        let differs = truth.keys().chain(has.keys()).find(|url| has.get(*url) != truth.get(*url))?;
        let (has, truth) = (has.get(differs), truth.get(differs));
        Some(format!("client {client} has {has:?} of {differs}, and the origin said {truth:?}"))
    });
    clients.collect()
}

/// Builds Flare, and says where it is.
fn build(release: bool) -> anyhow::Result<PathBuf> {
    let mut command = std::process::Command::new(env!("CARGO"));
    command.args(["build", "--quiet", "--package", "flare"]);
    if release {
        command.arg("--release");
    }
    if !command.status().context("building flare")?.success() {
        bail!("flare does not build");
    }
    Ok(crate::bench::target()?.join(if release { "release/flare" } else { "debug/flare" }))
}
