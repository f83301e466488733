//! Whole nodes in one process: a seed comes in, a schedule of operations and faults is played, and what broke a promise
//! goes out.
//!
//! Flare itself is real: operations, registry, journey, feeds, HTTP towards clients. What is around it follows from the
//! seed: the time (`clock.rs`), who goes on (`turns.rs`), the store (`weather.rs`, over the engine in memory), the network
//! (`line.rs`), clients (`answering.rs`, `client.rs`, `pair.rs`), origins and operators (`operate/`), and what happens to
//! the node (`schedule.rs`), each as often as the profile of the schedule says (`profile.rs`). At the end everything heals
//! and comes to rest (`rest.rs`), and then each client has what the origin said (`verify.rs`). Where that is asked for, what
//! Flare says of clients meanwhile is held against what they have recorded (`truth.rs`). The same seed gives the same
//! schedule, to the last line of its trace.

mod answering;
mod balance;
mod client;
mod clock;
mod cue;
mod house;
mod incident;
mod limits;
mod line;
mod node;
mod operate;
mod pair;
mod profile;
mod rest;
mod schedule;
mod stage;
mod together;
mod truth;
mod turns;
mod verify;
mod weather;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use flare_core::door::Entropy;
use flare_promises::dice::Dice;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use clock::Time;
use house::House;
use limits::Limits;
use stage::Stage;
use together::Together;
use turns::{Seat, Turns};
use weather::Sky;

/// What came of a schedule.
#[derive(Debug, Default)]
pub struct Report {
    /// What was wrong, ready to be read.
    pub wrong: Vec<String>,
    /// What happened, in order, if that was asked for.
    pub trace: Vec<String>,
    /// How many requests clients got, and how often the node crashed.
    pub requests: u64,
    pub crashes: u64,
    /// How often Flare was asked what it knows.
    pub probed: u64,
    /// How many nodes there were, and how many requests slipped out of nodes that were suspended beyond their lease.
    pub nodes: usize,
    pub late: u64,
}

/// How many nodes a schedule has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// As the seed says: one mostly, several in one of four.
    Drawn,
    /// So many.
    These(usize),
}

/// Plays the schedule of a seed.
pub fn run(seed: u64, traced: bool) -> Report {
    run_with(seed, traced, Nodes::Drawn)
}

/// The same with so many nodes.
pub fn run_with(seed: u64, traced: bool, nodes: Nodes) -> Report {
    play(seed, traced, false, nodes)
}

/// The same with one node, and now and then Flare is asked what it knows of a client, and that is held against what the client has
/// recorded; dead letters are dropped, too.
pub fn run_probed(seed: u64, traced: bool) -> Report {
    play(seed, traced, true, Nodes::These(1))
}

fn play(seed: u64, traced: bool, probed: bool, nodes: Nodes) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without threads and sockets can be made");
    runtime.block_on(simulate(seed, traced, probed, nodes))
}

async fn simulate(seed: u64, traced: bool, probed: bool, nodes: Nodes) -> Report {
    let dice = Dice::new(seed);
    let mut of_cluster = dice.fork(8);
    let nodes = match nodes {
        Nodes::These(nodes) => nodes.max(1),
        Nodes::Drawn if of_cluster.percent(5) => of_cluster.between(2, 3) as usize,
        Nodes::Drawn => 1,
    };
    let limits = Limits::draw(&mut dice.fork(1));
    let (arrivals, arriving) = mpsc::unbounded_channel();
    let stage = Stage::new(Time::begin(), dice.fork(2), traced, nodes > 1, arrivals);
    stage.note(|| format!("seed {seed}: {nodes} nodes, {} threads", limits.threads));
    let seats = if nodes > 1 { nodes + 1 } else { 1 };
    let seats: Vec<_> = (0..seats).map(|_| Rc::new(RefCell::new(Seat::default()))).collect();
    let sky = Sky::new(dice.fork(3));
    let entropy = Entropy::from_seed(dice.fork(4).below(u64::MAX));
    let (origins, clients) = (LocalSet::new(), LocalSet::new());
    let together = (nodes > 1).then(|| {
        let (together, bag) = Together::new(&stage.time, &mut of_cluster);
        stage.note(|| format!("{:?}", together.settings));
        clients.spawn_local(bag.carry_all());
        together
    });
    let (parted, seated) = (dice.fork(9), seats.clone());
    let house = House::new(house::Parts {
        stage: stage.clone(),
        sky,
        limits,
        entropy,
        seats,
        together,
        dice: parted,
    });
    clients.spawn_local(answering::serve(stage.clone(), arriving));
    let probes = probed.then(|| dice.fork(7));
    let schedule = origins.spawn_local(schedule::play(house, dice.fork(5), probes));
    let turns = Turns {
        schedule,
        origins,
        clients,
        nodes: seated,
        dice: dice.fork(6),
        time: stage.time.clone(),
        last: Default::default(),
    };
    if let Err(error) = turns.await {
        stage.wrong(format!("the schedule is not played to its end: {error}"));
    }
    let mut report = report(&stage);
    report.nodes = nodes;
    report
}

fn report(stage: &Arc<Stage>) -> Report {
    let trace = stage.take_trace();
    let mut inside = stage.lock();
    let wrong = std::mem::take(&mut inside.wrong);
    let late = inside.tenures.as_ref().map_or(0, |tenures| tenures.late);
    let (requests, crashes, probed) = (inside.requests, inside.crashes, inside.probed);
    Report { wrong, trace, requests, crashes, probed, nodes: 1, late }
}
