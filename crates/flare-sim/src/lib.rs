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
mod client;
mod clock;
mod cue;
mod limits;
mod line;
mod node;
mod operate;
mod pair;
mod profile;
mod rest;
mod schedule;
mod stage;
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
use limits::Limits;
use node::House;
use stage::Stage;
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
}

/// Plays the schedule of a seed.
pub fn run(seed: u64, traced: bool) -> Report {
    play(seed, traced, false)
}

/// The same, and now and then Flare is asked what it knows of a client, and that is held against what the client has
/// recorded; dead letters are dropped, too.
pub fn run_probed(seed: u64, traced: bool) -> Report {
    play(seed, traced, true)
}

fn play(seed: u64, traced: bool, probed: bool) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without threads and sockets can be made");
    runtime.block_on(simulate(seed, traced, probed))
}

async fn simulate(seed: u64, traced: bool, probed: bool) -> Report {
    let dice = Dice::new(seed);
    let limits = Limits::draw(&mut dice.fork(1));
    let (arrivals, arriving) = mpsc::unbounded_channel();
    let stage = Stage::new(Time::begin(), dice.fork(2), traced, arrivals);
    stage.note(|| format!("seed {seed}: {} threads", limits.threads));
    let seat = Rc::new(RefCell::new(Seat::default()));
    let sky = Sky::new(dice.fork(3));
    let entropy = Entropy::from_seed(dice.fork(4).below(u64::MAX));
    let house = House::new(stage.clone(), sky, seat.clone(), limits, entropy);
    let (origins, clients) = (LocalSet::new(), LocalSet::new());
    clients.spawn_local(answering::serve(stage.clone(), arriving));
    let probes = probed.then(|| dice.fork(7));
    let schedule = origins.spawn_local(schedule::play(house, dice.fork(5), probes));
    let turns = Turns {
        schedule,
        origins,
        clients,
        node: seat,
        dice: dice.fork(6),
        time: stage.time.clone(),
        last: Default::default(),
    };
    if let Err(error) = turns.await {
        stage.wrong(format!("the schedule is not played to its end: {error}"));
    }
    report(&stage)
}

fn report(stage: &Arc<Stage>) -> Report {
    let trace = stage.take_trace();
    let mut inside = stage.lock();
    let wrong = std::mem::take(&mut inside.wrong);
    Report { wrong, trace, requests: inside.requests, crashes: inside.crashes, probed: inside.probed }
}
