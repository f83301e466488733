//! The lanes of one subscription go from shard to shard while origins, clients and crashes go on. Dice come in; nothing
//! comes out, or the promise that was broken.
//!
//! To spread its lanes otherwise, a subscription begins nothing more; when nothing is in flight, each lane is released
//! with a last record, after the one that may be under way, and its next owner begins with what the ledger has. A crash
//! at any moment takes all lanes.

use proptest::prelude::*;

use super::super::check::step::{Left, Look, Records, SMALL, Scope, Step};
use super::super::check::world::World;
use super::Oracle;
use super::ways::{Event, Start, pick};

/// How far a change of the shards has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Every lane has an owner that serves it.
    Serving,
    /// Nothing more is begun; what is in flight ends.
    Draining,
    /// So many lanes have been released and taken over.
    Releasing(usize),
}

/// A subscription with several lanes.
struct Lanes {
    start: Start,
    worlds: Vec<World<Oracle>>,
    phase: Phase,
    /// Lanes are released only when nothing of theirs is in flight.
    drains: bool,
}

impl Lanes {
    fn new(die: u32, drains: bool) -> Lanes {
        let filters = (die >> 16).is_multiple_of(2);
        let refilters = if filters { 3 } else { 0 };
        let left = Left { events: 20, crashes: 4, stops: 6, replays: 2, refilters, ..SMALL.left };
        let scope = Scope {
            docs: 2,
            left,
            records: if die.is_multiple_of(2) { Records::Apart } else { Records::AtOnce },
            block: [1, 2, 4, 16][(die >> 4) as usize % 4],
            window: Some([1, 2, 3, 100][(die >> 8) as usize % 4]),
            looks: if filters { &[Look::Out] } else { &[] },
            sweeps: true,
            asked: true,
            all: (die >> 12).is_multiple_of(2),
            ..SMALL
        };
        let start = Start::new(scope);
        let worlds = (0..2 + die as usize % 3).map(|_| start.world()).collect();
        Lanes { start, worlds, phase: Phase::Serving, drains }
    }

    fn goes(&mut self, die: u32) -> Result<(), String> {
        let (kind, die) = (die % 64, die / 64);
        match (self.phase, kind) {
            (_, 0) if self.worlds[0].left.crashes > 0 => {
                self.phase = Phase::Serving;
                self.worlds.iter_mut().try_for_each(|world| world.take(Step::Crash, &self.start.scope))
            }
            (Phase::Serving, 1..4) if self.worlds[0].left.stops > 0 => {
                self.phase = Phase::Draining;
                Ok(())
            }
            (Phase::Draining, 0..16) => {
                let idle = |world: &World<Oracle>| world.open.iter().all(Option::is_none);
                if !self.drains || self.worlds.iter().all(idle) {
                    self.phase = Phase::Releasing(0);
                }
                Ok(())
            }
            (Phase::Releasing(lane), 0..16) => {
                self.phase =
                    if lane + 1 < self.worlds.len() { Phase::Releasing(lane + 1) } else { Phase::Serving };
                self.worlds[lane].take(Step::Stop, &self.start.scope)
            }
            _ => {
                let lane = kind as usize % self.worlds.len();
                self.lives(lane, die)
            }
        }
    }

    /// Something happens in one lane.
    fn lives(&mut self, lane: usize, die: u32) -> Result<(), String> {
        let world = &mut self.worlds[lane];
        if die.is_multiple_of(13) {
            return self.start.happens(world, Event::Arrival(die as usize / 13));
        }
        let served = match self.phase {
            Phase::Serving => true,
            Phase::Draining => false,
            Phase::Releasing(next) => lane < next,
        };
        let mut steps = world.steps(&self.start.scope);
        // Those of the whole subscription are not a lane's.
        steps.retain(|step| !matches!(step, Step::Crash | Step::Stop));
        if !served {
            let goes_on = |step: &Step| {
                matches!(step, Step::Put(_) | Step::Delete(_) | Step::Answer(..) | Step::Take | Step::Commit)
            };
            steps.retain(goes_on);
        }
        match pick(&steps, die / 13) {
            Some(step) => self.start.happens(world, Event::Step(step)),
            None => Ok(()),
        }
    }
}

fn run(dice: &[u32], drains: bool) -> Result<(), String> {
    let mut lanes = Lanes::new(dice[0], drains);
    dice[1..].iter().try_for_each(|die| lanes.goes(*die))?;
    let Lanes { start, worlds, .. } = lanes;
    worlds.into_iter().try_for_each(|world| start.ends(world))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn lanes_that_change_their_shard_send_what_the_oracle_says(
        dice in prop::collection::vec(any::<u32>(), 100..800)
    ) {
        run(&dice, true).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn the_oracle_sees_when_a_lane_is_released_with_something_in_flight() {
    let breaks = |seed: u64| {
        let dice = super::ways::loaded_dice(seed);
        std::panic::catch_unwind(|| run(&dice, false)).map_or(true, |way| way.is_err())
    };
    assert!((1..200).any(breaks));
}
