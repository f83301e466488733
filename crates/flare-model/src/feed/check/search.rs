//! Breadth-first over all interleavings of a scope. Out comes how many worlds there are, or the shortest
//! way to a broken promise.
//!
//! Liveness needs no search of its own. In every world one of the steps is the *quiet* one: what happens when
//! the client answers success and nobody disturbs. It leads to a world that is explored anyway. So it is enough
//! that quiet steps never go in a circle, and that the worlds in which they end are as they should be.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use super::ghost::Ghost;
use super::step::{Answer, Scope, Step};
use super::watch::Watch;
use super::world::World;
use crate::feed::rule::Rule;

/// What a search has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Different worlds.
    pub worlds: usize,
    /// Steps between them.
    pub steps: usize,
    /// Worlds in which a quiet run ends.
    pub rests: usize,
    /// The longest shortest way to a world.
    pub depth: usize,
}

/// A broken promise, and the shortest way to it.
pub struct Violation {
    scope: Scope,
    removed: Option<Rule>,
    trace: Vec<Step>,
    promise: String,
}

/// Goes the way once more and tells what is open and what is durable after each step.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut world = World::new(&self.scope, Ghost::new(self.scope.docs), self.removed);
        for (number, step) in self.trace.iter().enumerate() {
            // A feed at rest is stopped and killed whatever the scope allows.
            if *step == Step::Stop && world.left.stops == 0 || *step == Step::Crash && world.left.crashes == 0
            {
                (world.left.stops, world.left.crashes) = (1, 1);
            }
            write!(f, "{:3}. {:26}", number + 1, format!("{step:?}"))?;
            match world.take(*step, &self.scope) {
                Ok(()) => writeln!(f, "{}", world.tell())?,
                Err(_) => writeln!(f)?,
            }
        }
        write!(f, "{}", self.promise)
    }
}

/// The keys are hashes already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only u128 is hashed");
    }

    fn write_u128(&mut self, word: u128) {
        self.0 = word as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

const NONE: u32 = u32::MAX;

/// Explores a scope, with a rule removed or none.
pub fn search(scope: &Scope, removed: Option<Rule>) -> Result<Seen, Box<Violation>> {
    let violation = |trace, promise| Box::new(Violation { scope: *scope, removed, trace, promise });
    let first = World::new(scope, Ghost::new(scope.docs), removed);
    let mut index: HashMap<u128, u32, BuildHasherDefault<AsIs>> = HashMap::default();
    let mut origins = vec![(NONE, Step::Tail)];
    let mut quiet: Vec<u32> = Vec::new();
    let mut seen = Seen::default();
    let mut depths = vec![0u16];
    index.insert(first.print(), 0);
    let mut queue = VecDeque::from([(0u32, first)]);
    let way = |origins: &[(u32, Step)], mut number: u32, last: &[Step]| {
        let mut trace: Vec<Step> = last.iter().rev().copied().collect();
        while origins[number as usize].0 != NONE {
            trace.push(origins[number as usize].1);
            number = origins[number as usize].0;
        }
        trace.reverse();
        trace
    };
    while let Some((number, world)) = queue.pop_front() {
        let mut next = (u8::MAX, NONE);
        let steps = world.steps(scope);
        for step in steps {
            let mut after = world.clone();
            if let Err(promise) = after.take(step, scope) {
                return Err(violation(way(&origins, number, &[step]), promise));
            }
            seen.steps += 1;
            let fresh = origins.len() as u32;
            let found = *index.entry(after.print()).or_insert(fresh);
            if found == number {
                continue;
            }
            let calm = calm(step);
            if calm < next.0 {
                next = (calm, found);
            }
            if found == fresh {
                assert!(origins.len() < scope.most, "{}: more than {} worlds", scope.name, scope.most);
                origins.push((number, step));
                depths.push(depths[number as usize] + 1);
                queue.push_back((fresh, after));
            }
        }
        quiet.push(next.1);
        if next.1 == NONE {
            seen.rests += 1;
            if let Err((promise, steps)) = rests(&world, scope) {
                return Err(violation(way(&origins, number, &steps), promise));
            }
        }
    }
    if let Some(number) = circle(&quiet) {
        let promise = "a quiet run never ends".into();
        return Err(violation(way(&origins, number, &[]), promise));
    }
    seen.worlds = origins.len();
    seen.depth = depths.iter().copied().max().unwrap_or(0).into();
    Ok(seen)
}

/// Which step a quiet run takes first; those it never takes are `u8::MAX`.
fn calm(step: Step) -> u8 {
    match step {
        Step::Commit => 0,
        Step::Hear => 0,
        Step::Resume => 0,
        Step::Answer(_, Answer::Success) => 1,
        Step::Sweep => 2,
        Step::Retry(_) => 3,
        Step::Read => 4,
        Step::Tail => 5,
        Step::Take => 6,
        _ => u8::MAX,
    }
}

/// At the end of a quiet run everything is where it should be; and neither a clean stop nor a crash after it
/// makes the feed send anything more.
fn rests(world: &World<Ghost>, scope: &Scope) -> Result<(), (String, Vec<Step>)> {
    world.at_rest().map_err(|promise| (promise, Vec::new()))?;
    for end in [Step::Stop, Step::Crash] {
        let mut after = world.clone();
        let mut steps = vec![end];
        (after.left.stops, after.left.crashes) = (1, 1);
        let run = after.take(end, scope).and_then(|()| run_quietly(&mut after, scope, &mut steps));
        run.and_then(|()| after.at_rest()).map_err(|promise| (promise, steps.clone()))?;
        if after.begun > world.begun {
            return Err(("a feed at rest was opened again and sent something".into(), steps));
        }
        if end == Step::Stop && after.saved.issued.0 != 0 {
            return Err(("a clean stop leaves something to doubt".into(), steps));
        }
    }
    Ok(())
}

/// Lets a world run until nothing happens any more.
pub fn run_quietly<W: Watch>(
    world: &mut World<W>,
    scope: &Scope,
    taken: &mut Vec<Step>,
) -> Result<(), String> {
    let mut print = world.print();
    'next: for _ in 0..10_000 {
        let mut steps = world.steps(scope);
        steps.retain(|step| calm(*step) != u8::MAX);
        steps.sort_by_key(|step| calm(*step));
        for step in steps {
            let mut after = world.clone();
            taken.push(step);
            after.take(step, scope)?;
            let printed = after.print();
            if printed != print {
                (*world, print) = (after, printed);
                continue 'next;
            }
            taken.pop();
        }
        return Ok(());
    }
    Err("a quiet run never ends".into())
}

/// A world from which quiet steps lead back to it.
fn circle(quiet: &[u32]) -> Option<u32> {
    const OPEN: u8 = 1;
    const DONE: u8 = 2;
    let mut marks = vec![0u8; quiet.len()];
    for start in 0..quiet.len() as u32 {
        let mut path = Vec::new();
        let mut at = start;
        while at != NONE && marks[at as usize] == 0 {
            marks[at as usize] = OPEN;
            path.push(at);
            at = quiet[at as usize];
        }
        if at != NONE && marks[at as usize] == OPEN {
            return Some(at);
        }
        for passed in path {
            marks[passed as usize] = DONE;
        }
    }
    None
}
