//! Random ways through a world that the oracle watches. Dice come in; nothing comes out, or the promise that was broken
//! and the shortest part of the way that still breaks it.

use proptest::prelude::*;

use super::super::check::search::run_quietly;
use super::super::check::states::States;
use super::super::check::step::{Answer, Left, Look, Records, SMALL, Scope, Step};
use super::super::check::world::World;
use super::super::rule::Rule;
use super::{Given, Oracle};

/// A scope by a throw of the dice: few documents or more, marks and windows that hardly matter or always do.
fn scope(die: u32) -> Scope {
    let pick = |shift: u32, of: &[u64]| of[(die >> shift) as usize % of.len()];
    let (filters, all) = (pick(24, &[0, 1]) == 1, pick(25, &[0, 1]) == 1);
    let left = Left {
        events: 40,
        crashes: 5,
        stops: 2,
        pauses: pick(27, &[0, 3]) as u8,
        replays: 5,
        drops: 3,
        restores: 0,
        beginnings: 1,
        leases: pick(20, &[0, 0, 6, 24]) as u8,
        refilters: if filters { 3 } else { 0 },
        changes: pick(22, &[0, 0, 3]) as u8,
        trims: pick(26, &[0, 3]) as u8,
    };
    Scope {
        docs: pick(0, &[5, 3, 2, 1]) as usize,
        left,
        records: if pick(8, &[0, 1]) == 0 { Records::Apart } else { Records::AtOnce },
        block: pick(12, &[4, 1, 2, 16]),
        window: Some(pick(16, &[3, 1, 2, 100])),
        looks: if filters { &[Look::Out, Look::Untold, Look::Error] } else { &[] },
        sweeps: true,
        skips: true,
        again: true,
        asked: pick(28, &[0, 1]) == 1,
        // Whoever looks for every revision finds it, and the newest of a document after a change to that is known.
        outdated: !all && pick(22, &[0, 0, 3]) == 0,
        all,
        ..SMALL
    }
}

/// How likely a step is among those that can happen.
fn weight(step: &Step) -> u32 {
    match step {
        Step::Put(_) => 3,
        Step::PutAs(_, Look::Out) => 3,
        Step::PutAs(..) => 1,
        Step::Delete(_) => 2,
        Step::Answer(_, Answer::Success) => 12,
        Step::Answer(_, Answer::Lost) => 8,
        Step::Answer(_, _) => 2,
        Step::Read => 20,
        Step::Retry(_) => 8,
        Step::Take | Step::Commit => 12,
        Step::Sweep => 8,
        Step::Change | Step::Trim | Step::Pause | Step::RecordNothing => 1,
        Step::Crash | Step::Stop | Step::Replay | Step::Ask(_) | Step::BeginAgain | Step::Refilter => 1,
        _ => 4,
    }
}

/// One thing that happens on a way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Step(Step),
    /// One of the requests that were lost arrives after all.
    Arrival(usize),
}

/// A world at the beginning of a way.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) scope: Scope,
    removed: Option<Rule>,
    /// With kept states, or without.
    states: Option<States>,
}

impl Start {
    /// With all rules, and no kept states.
    pub(super) fn new(scope: Scope) -> Start {
        Start { scope, removed: None, states: None }
    }

    pub(super) fn world(&self) -> World<Oracle> {
        let mut world = World::new(&self.scope, Oracle::new(self.scope.docs), self.removed);
        world.feed.keep_states(self.states.is_some());
        world.states = self.states.clone();
        world
    }

    /// Goes where the dice lead, and notes it.
    fn wander(&self, dice: &[u32], way: &mut Vec<Event>) -> Result<(), String> {
        let mut world = self.world();
        for die in dice {
            let event = match die % 13 {
                0 => Event::Arrival(*die as usize / 13),
                _ => match pick(&world.steps(&self.scope), die / 13) {
                    Some(step) => Event::Step(step),
                    None => break,
                },
            };
            way.push(event);
            self.happens(&mut world, event)?;
        }
        self.ends(world)
    }

    pub(super) fn happens(&self, world: &mut World<Oracle>, event: Event) -> Result<(), String> {
        match event {
            Event::Step(step) => world.take(step, &self.scope),
            Event::Arrival(pick) => world.watch.arrives(pick),
        }
    }

    /// At its end everyone gets what is owed, and then whatever was lost on the way arrives after all.
    pub(super) fn ends(&self, mut world: World<Oracle>) -> Result<(), String> {
        run_quietly(&mut world, &self.scope, &mut Vec::new())?;
        world.at_rest()?;
        let before = world.watch.client.has.clone();
        while !world.watch.client.late.is_empty() {
            world.watch.arrives(0)?;
        }
        for (doc, pair) in world.watch.rows.iter().enumerate() {
            if pair.given == Given::Newest && world.watch.client.has[doc] != before[doc] {
                return Err(format!("a late request changed document {doc}"));
            }
        }
        Ok(())
    }

    /// Goes a way that is known, but for what cannot happen any more since a part of it was left out.
    fn follow(&self, way: &[Event], told: &mut Vec<String>) -> Result<(), String> {
        let mut world = self.world();
        for event in way {
            if let Event::Step(step) = event
                && !world.steps(&self.scope).contains(step)
            {
                continue;
            }
            told.push(format!("{event:?}"));
            self.happens(&mut world, *event)?;
            if let Some(told) = told.last_mut() {
                *told = format!("{told:32} {}", world.tell());
            }
        }
        told.push("and then quietly to the end".into());
        self.ends(world)
    }

    /// Leaves out whatever the broken promise does not need: halves, quarters, single steps, until nothing can go.
    fn cut_short(&self, mut way: Vec<Event>) -> Vec<Event> {
        let breaks = |way: &[Event]| self.follow(way, &mut Vec::new()).is_err();
        let mut length = way.len().div_ceil(2);
        while length > 0 {
            let before = way.len();
            let mut at = 0;
            while at < way.len() {
                let without = [&way[..at], &way[way.len().min(at + length)..]].concat();
                if breaks(&without) { way = without } else { at += length }
            }
            if length > 1 || way.len() == before {
                length /= 2;
            }
        }
        way
    }
}

/// The step that a throw points at, by the weights.
pub(super) fn pick(steps: &[Step], throw: u32) -> Option<Step> {
    let mut throw = throw.checked_rem(steps.iter().map(weight).sum::<u32>())?;
    let found = steps.iter().find(|step| match throw.checked_sub(weight(step)) {
        Some(rest) => {
            throw = rest;
            false
        }
        None => true,
    });
    found.copied()
}

/// One way through the world, by dice.
fn run(dice: &[u32], removed: Option<Rule>) -> Result<(), String> {
    run_keeping(dice, removed, None)
}

/// The same with kept states, or without.
fn run_keeping(dice: &[u32], removed: Option<Rule>, states: Option<States>) -> Result<(), String> {
    let start = Start { scope: scope(dice[0]), removed, states };
    let mut way = Vec::new();
    let Err(promise) = start.wander(&dice[1..], &mut way) else { return Ok(()) };
    if removed.is_some() {
        return Err(promise);
    }
    let mut told = Vec::new();
    let promise = start.follow(&start.cut_short(way), &mut told).err().unwrap_or(promise);
    Err(format!("{promise}\n{:?}\n{}", start.scope, told.join("\n")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn a_feed_sends_what_the_naive_oracle_says(dice in prop::collection::vec(any::<u32>(), 50..400)) {
        run(&dice, None).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn a_state_that_is_believed_is_what_the_client_has(dice in prop::collection::vec(any::<u32>(), 50..400)) {
        run_keeping(&dice, None, Some(States::new())).map_err(TestCaseError::fail)?;
    }
}

/// Dice that are the same every time.
pub(super) fn loaded_dice(seed: u64) -> Vec<u32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let throw = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    };
    (0..300).map(throw).collect()
}

#[test]
fn the_oracle_sees_when_a_state_is_believed_that_should_not_be() {
    let seen = |states: States| {
        (1..2_000).any(|seed| run_keeping(&loaded_dice(seed), None, Some(states.clone())).is_err())
    };
    assert!(!seen(States::new()));
    assert!(seen(States { forgets: false, ..States::new() }), "after an unknown outcome");
    assert!(seen(States { lives: false, ..States::new() }), "after a crash");
}

#[test]
fn the_oracle_sees_when_a_rule_is_gone() {
    // There are no restores here, nobody counts the documents of a sweep, and the others need too much of
    // a coincidence. The exhaustive check sees them all.
    let unseen = [
        Rule::TailOnce,
        Rule::OpenAheadHolds,
        Rule::DisplacedDoubt,
        Rule::GiveUpNewest,
        Rule::SweepAhead,
        Rule::LeaseStands,
        Rule::OtherLog,
        Rule::OtherDocuments,
        Rule::JudgeRemoved,
    ];
    let wanted = Rule::ALL.into_iter().filter(|rule| !unseen.contains(rule));
    let breaks = |seed: u64, rule: &Rule| {
        let mut dice = loaded_dice(seed);
        // Every other one as it is without the modes of a filter or a history.
        dice[0] &= if seed.is_multiple_of(2) { u32::MAX } else { 0x3f_ffff };
        // Without a rule the feed's own assertions may see it first.
        std::panic::catch_unwind(|| run(&dice, Some(*rule))).map_or(true, |way| way.is_err())
    };
    let seen = |rule: &Rule| (1..6_000).any(|seed| breaks(seed, rule));
    let blind: Vec<Rule> = wanted.filter(|rule| !seen(rule)).collect();
    assert_eq!(blind, []);
}

#[test]
fn a_standing_is_judged_alike_before_and_after_a_change_of_the_revisions_that_are_sent() {
    use Step::{Answer as Answered, Ask, Change, Commit, Crash, Delete, Put, Read, Take};
    // In the end document 3 stands for change 5, which the client has, and change 7 may have been sent.
    let way = [
        vec![Delete(0), Read, Delete(1), Take, Delete(2), Commit, Delete(3), Crash],
        vec![Read, Put(3), Read, Put(2), Read, Take, Commit, Read, Answered(3, Answer::Success), Ask(3)],
        vec![Read, Put(3), Read, Take, Commit, Crash],
        vec![Read, Put(2), Put(1), Read, Change, Crash],
    ];
    let left = Left { events: 40, crashes: 5, replays: 5, changes: 3, ..SMALL.left };
    let scope = Scope { docs: 4, left, records: Records::Apart, block: 2, again: true, ..SMALL };
    let events: Vec<Event> = way.concat().into_iter().map(Event::Step).collect();
    let mut told = Vec::new();
    let result = Start::new(scope).follow(&events, &mut told);
    assert_eq!(told.len(), events.len() + 1, "each step can happen: {told:#?}");
    result.expect("a change has one identity");
}
