//! The life of two or three nodes under an abstract coordinator that a seed decides: requests and answers that are lost or
//! late (a request also after its sender was told that nobody knows), nodes that are cut off, pauses, crashes, clocks that run
//! up to 1 % too fast or too slow; a store that one node does not reach, or none. At every moment at most one node acts for a unit, and no unit is cut whose claim is still
//! there without another reason, or that nobody else could have; when all is well again, each unit has one node, and they are even.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::cluster::keys::{Load, PROTOCOL};
use crate::cluster::{NodeState, UnitKind};

/// A rule that is taken away, to show that this finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster) enum Broken {
    DeadlineFromAnswer,
    KeepsWhatItBelieved,
    BelievesOldLists,
    GivesUpAlone,
}

impl Life {
    pub(super) fn breaks(&self, rule: Broken) -> bool {
        self.broken == Some(rule)
    }

    pub(super) fn gives_up_alone(&self) -> bool {
        self.breaks(Broken::GivesUpAlone) && self.is_stuck()
    }
}

const LEASE: Duration = Duration::from_secs(10);
const MARGIN: Duration = Duration::from_secs(2);
const CHAOS: Duration = Duration::from_secs(150);
const CALM: Duration = Duration::from_secs(150);

/// How often a node looks at itself.
const LOOK: Duration = Duration::from_millis(1500);

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn in_a_hundred(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn millis(&mut self, bound: u64) -> Duration {
        Duration::from_millis(1 + self.below(bound))
    }
}

#[derive(Default)]
struct Coordinator {
    keys: BTreeMap<String, (Vec<u8>, Version, Option<SessionId>)>,
    sessions: BTreeMap<SessionId, (usize, Duration)>,
    version: u64,
    given: u64,
}

impl Coordinator {
    fn expire(&mut self, now: Duration) -> bool {
        if self.sessions.values().all(|(_, ends)| *ends > now) {
            return false;
        }
        let before = self.keys.len();
        self.sessions.retain(|_, (_, ends)| *ends > now);
        let sessions = &self.sessions;
        self.keys.retain(|_, (_, _, session)| session.as_ref().is_none_or(|of| sessions.contains_key(of)));
        before != self.keys.len()
    }

    /// What comes of a request that arrives now, and whether keys changed.
    fn take(&mut self, node: usize, request: &Request, now: Duration) -> (Answer, bool) {
        let changed = self.expire(now);
        let (answer, more) = self.take_now(node, request, now);
        (answer, changed || more)
    }

    fn take_now(&mut self, node: usize, request: &Request, now: Duration) -> (Answer, bool) {
        match request {
            Request::Grant { ttl } => {
                self.given += 1;
                let session = SessionId::new(format!("s{}", self.given));
                self.sessions.insert(session.clone(), (node, now + *ttl));
                (Answer::Granted { session, ttl: *ttl }, false)
            }
            Request::Renew { session } => match self.sessions.get_mut(session) {
                Some((owner, ends)) if *owner == node => {
                    *ends = now + LEASE;
                    (Answer::Renewed(LEASE), false)
                }
                _ => (Answer::Fenced, false),
            },
            Request::End { session } => {
                if let Some((_, ends)) = self.sessions.get_mut(session) {
                    *ends = now;
                }
                (Answer::Done(None), self.expire(now))
            }
            Request::Create { session: Some(session), .. } if !self.sessions.contains_key(session) => {
                (Answer::Fenced, false)
            }
            Request::Create { key, .. } if self.keys.contains_key(key) => (Answer::Conflict, false),
            Request::Create { key, value, session } => self.put(key, value, session.clone()),
            Request::Replace { key, version, value } => match self.keys.get(key) {
                Some((_, found, session)) if found == version => {
                    let session = session.clone();
                    self.put(key, value, session)
                }
                _ => (Answer::Conflict, false),
            },
            Request::Delete { key, version } => match self.keys.get(key) {
                Some((_, found, _)) if found == version => {
                    self.keys.remove(key);
                    (Answer::Done(None), true)
                }
                _ => (Answer::Conflict, false),
            },
            Request::List => (Answer::Listed(Arc::new(self.snapshot())), false),
            Request::Epoch => unreachable!("the ledger has epochs"),
        }
    }

    fn put(&mut self, key: &str, value: &[u8], session: Option<SessionId>) -> (Answer, bool) {
        self.version += 1;
        let version = Version(self.version);
        self.keys.insert(key.to_owned(), (value.to_vec(), version, session));
        (Answer::Done(Some(version)), true)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::read(self.keys.iter().map(|(key, (value, version, session))| Keyed {
            key,
            value,
            version: *version,
            session: session.as_ref(),
        }))
    }
}

/// What is going to happen.
enum Thing {
    /// A request arrives; its answer comes so much later, or never.
    Arrives {
        node: usize,
        life: u64,
        ask: Ask,
        request: Request,
        answer: Option<Duration>,
    },
    /// Something reaches a node.
    Reaches {
        node: usize,
        life: u64,
        event: Event,
    },
    Wakes {
        node: usize,
    },
    /// A node looks at itself.
    Notices {
        node: usize,
        life: u64,
    },
    /// A node that has left is started again.
    Restarts {
        node: usize,
        life: u64,
    },
    Fault,
}

struct Node {
    life: Life,
    /// Which life it is: what was on its way to an earlier one is lost.
    number: u64,
    /// Its clock runs so many thousandths too fast.
    drift: i64,
    paused_until: Duration,
    /// Nothing that it sends arrives.
    cut_off_until: Duration,
    /// It does not reach the store.
    storeless_until: Duration,
    /// Since when, as far as it has looked.
    unread: Duration,
    alarm: Option<Duration>,
    /// Units that run, with their epochs.
    open: BTreeMap<UnitId, u64>,
}

impl Node {
    fn clock(&self, now: Duration) -> Moment {
        let nanos = now.as_nanos() as i64;
        let local = nanos + nanos / 1000 * self.drift;
        Moment {
            monotonic: Duration::from_nanos(local as u64),
            wall: Timestamp::from_millis(local / 1_000_000),
        }
    }

    /// When its clock will say so.
    fn when(&self, local: Duration) -> Duration {
        let nanos = local.as_nanos() as i64;
        Duration::from_nanos((nanos * 1000 / (1000 + self.drift)) as u64 + 1_000_000)
    }
}

pub(in crate::cluster) struct World {
    now: Duration,
    chance: Chance,
    coordinator: Coordinator,
    epochs: u64,
    ledger: BTreeMap<UnitId, u64>,
    nodes: Vec<Node>,
    agenda: BinaryHeap<Reverse<(Duration, u64)>>,
    things: BTreeMap<u64, Thing>,
    count: u64,
    catalog: Arc<BTreeMap<UnitId, Existing>>,
    broken: Option<Broken>,
    wrong: Option<String>,
    /// What happened, where somebody wants to read it.
    trace: Option<Vec<String>>,
}

fn settings(node: usize) -> (Settings, NodeRecord) {
    let settings = Settings {
        node: NodeId::new(format!("node-{node}")),
        lease: LEASE,
        renew: LEASE / 3,
        margin: MARGIN,
        drain_timeout: Duration::from_secs(4),
        rebalance_delay: LEASE,
        moves: 4,
    };
    let record = NodeRecord {
        protocol: PROTOCOL,
        address: String::new(),
        state: NodeState::Live,
        weight: 1,
        eligible: true,
        version: String::new(),
        sha: String::new(),
        started_at: Timestamp::from_millis(0),
        load: Load::default(),
        gives_back: false,
        clock: None,
        trouble: None,
    };
    (settings, record)
}

impl World {
    fn new(seed: u64, broken: Option<Broken>) -> World {
        let mut chance = Chance(seed);
        let units = 2 + chance.below(5);
        let existing = Existing { weight: 1.0, origin: Reason::Created, parts: 1, with: None };
        let id = |number: u64| UnitId::new(UnitKind::Subscription, format!("sub_{number}"), "0");
        let mut world = World {
            now: Duration::ZERO,
            coordinator: Coordinator::default(),
            epochs: 0,
            ledger: BTreeMap::new(),
            nodes: Vec::new(),
            agenda: BinaryHeap::new(),
            things: BTreeMap::new(),
            count: 0,
            catalog: Arc::new((0..units).map(|number| (id(number), existing.clone())).collect()),
            broken,
            wrong: None,
            trace: None,
            chance,
        };
        for node in 0..2 + world.chance.below(2) as usize {
            let drift = world.chance.below(21) as i64 - 10;
            let (settings, record) = settings(node);
            let open = BTreeMap::new();
            let life = Life::new(
                settings,
                record,
                Moment { monotonic: Duration::ZERO, wall: Timestamp::from_millis(0) },
            );
            world.nodes.push(Node {
                life,
                number: 0,
                drift,
                paused_until: Duration::ZERO,
                cut_off_until: Duration::ZERO,
                storeless_until: Duration::ZERO,
                unread: Duration::ZERO,
                alarm: None,
                open,
            });
            world.begin(node);
        }
        world.plan(Duration::from_secs(5), Thing::Fault);
        world
    }

    fn begin(&mut self, node: usize) {
        self.nodes[node].life.broken = self.broken;
        let units = Event::Units(self.catalog.clone());
        self.step(node, units);
        let life = self.nodes[node].number;
        self.plan(self.now + LOOK, Thing::Notices { node, life });
    }

    fn plan(&mut self, at: Duration, thing: Thing) {
        self.count += 1;
        self.things.insert(self.count, thing);
        self.agenda.push(Reverse((at, self.count)));
    }

    fn is_chaos(&self) -> bool {
        self.now < CHAOS
    }

    fn step(&mut self, node: usize, event: Event) {
        let clock = self.nodes[node].clock(self.now);
        let told = match &event {
            Event::Fenced(unit) => Some(unit.clone()),
            _ => None,
        };
        let woken = matches!(event, Event::Woke);
        let before = self.nodes[node].life.tenures().clone();
        let words = self.trace.is_some().then(|| format!("{:?} node {node} {event:?}", self.now));
        let actions = self.nodes[node].life.step(clock, event);
        if let (Some(trace), Some(words)) = (&mut self.trace, words) {
            trace.push(format!("{words} -> {actions:?}"));
        }
        let idle = woken && actions.is_empty();
        for action in actions {
            if let Action::Cut(unit) = &action {
                let draining = matches!(before.get(unit), Some(Tenure::Draining { .. }));
                let given_up = self.is_given_up(node, unit);
                self.check_cut(node, unit, draining || given_up || told.as_ref() == Some(unit));
            }
            self.act(node, action);
        }
        let due = self.nodes[node].life.wakes_at();
        if idle && due <= clock.monotonic && self.wrong.is_none() && self.broken.is_none() {
            self.wrong =
                Some(format!("{:?}: node {node} would be woken again and again for nothing", self.now));
        }
        let wakes =
            self.nodes[node].when(self.nodes[node].life.wakes_at()).max(self.now + Duration::from_millis(1));
        // One alarm at a time: an earlier one looks again.
        if self.nodes[node].alarm.is_none_or(|alarm| wakes < alarm) {
            self.nodes[node].alarm = Some(wakes);
            self.plan(wakes, Thing::Wakes { node });
        }
    }

    /// The node does not work, and the unit was given to another that may.
    fn is_given_up(&self, node: usize, unit: &UnitId) -> bool {
        let Node { life, .. } = &self.nodes[node];
        let elsewhere = |seen: &Arc<Snapshot>| {
            seen.assignment(unit).is_some_and(|assignment| assignment.node != life.settings.node)
        };
        life.is_stuck() && life.seen().is_some_and(elsewhere)
    }

    /// A unit is cut because the node was told to, or what is in flight takes too long, or the session is over or about to be, or
    /// the claim is gone.
    fn check_cut(&mut self, node: usize, unit: &UnitId, told: bool) {
        let life = &self.nodes[node].life;
        let claim = self.coordinator.keys.get(&crate::cluster::keys::of_claim(unit));
        let mine = claim.is_some_and(|(_, _, session)| session.as_ref() == life.session());
        if mine && life.may_act() && !told && self.wrong.is_none() {
            self.wrong = Some(format!("{:?}: node {node} cuts {unit} for nothing", self.now));
        }
    }

    fn act(&mut self, node: usize, action: Action) {
        let life = self.nodes[node].number;
        match action {
            Action::Ask { ask, request } => self.send(node, ask, request),
            Action::Open { unit, epoch } => {
                // The ledger raises the epoch before anything is sent.
                let stands = self.ledger.entry(unit.clone()).or_default();
                let storeless = self.nodes[node].storeless_until > self.now;
                let event = if *stands > epoch || storeless {
                    Event::NotOpened(unit)
                } else {
                    *stands = epoch;
                    self.nodes[node].open.insert(unit.clone(), epoch);
                    Event::Opened(unit)
                };
                let at = self.now + self.chance.millis(300);
                self.plan(at, Thing::Reaches { node, life, event });
            }
            Action::Drain(unit) => {
                let at = self.now + self.chance.millis(6000);
                self.plan(at, Thing::Reaches { node, life, event: Event::Closed(unit) });
            }
            Action::Cut(unit) => {
                self.nodes[node].open.remove(&unit);
                let at = self.now + self.chance.millis(500);
                self.plan(at, Thing::Reaches { node, life, event: Event::Closed(unit) });
            }
            Action::Exit(Exit::Left) => {
                let at = self.now + self.chance.millis(5000);
                self.plan(at, Thing::Restarts { node, life });
            }
            Action::Exit(why) => self.wrong = Some(format!("node {node} ends: {why:?}")),
        }
    }

    fn send(&mut self, node: usize, ask: Ask, request: Request) {
        let life = self.nodes[node].number;
        let trouble = if self.is_chaos() { 12 } else { 0 };
        let slow = |chance: &mut Chance| if chance.in_a_hundred(10) { 9000 } else { 40 };
        let slow = if self.is_chaos() { [slow(&mut self.chance), slow(&mut self.chance)] } else { [40, 40] };
        let (there, back) = (self.chance.millis(slow[0]), self.chance.millis(slow[1]));
        // As whoever drives it does.
        let gives_up = LEASE / 3;
        let cut_off = self.nodes[node].cut_off_until > self.now;
        let lost = self.chance.in_a_hundred(trouble) || cut_off;
        let unanswered = self.chance.in_a_hundred(trouble);
        if !lost {
            let answer = (!unanswered).then_some(back);
            self.plan(self.now + there, Thing::Arrives { node, life, ask, request, answer });
        }
        if lost || unanswered || there + back > gives_up {
            // The request may still be on its way.
            let event = Event::Answered { ask, answer: Answer::Unknown };
            self.plan(self.now + gives_up, Thing::Reaches { node, life, event });
        }
    }

    fn happen(&mut self, thing: Thing) {
        match thing {
            Thing::Arrives { node, life, ask, request, answer } => {
                let storeless = self.nodes[node].storeless_until > self.now;
                let given = if request == Request::Epoch && storeless {
                    Answer::Failed
                } else if request == Request::Epoch {
                    self.epochs += 1;
                    Answer::Epoch(self.epochs)
                } else {
                    let (given, changed) = self.coordinator.take(node, &request, self.now);
                    if changed {
                        self.tell_all();
                    }
                    given
                };
                if let Some(later) = answer {
                    let event = Event::Answered { ask, answer: given };
                    self.plan(self.now + later, Thing::Reaches { node, life, event });
                }
            }
            Thing::Reaches { node, life, event } if self.nodes[node].number == life => {
                if self.nodes[node].paused_until > self.now {
                    let at = self.nodes[node].paused_until;
                    self.plan(at, Thing::Reaches { node, life, event });
                    return;
                }
                if let Event::Closed(unit) = &event {
                    // A unit that was cut while it drained is closed once.
                    let tenure = self.nodes[node].life.tenures().get(unit);
                    if !matches!(tenure, Some(Tenure::Draining { .. } | Tenure::Closing { .. })) {
                        return;
                    }
                    self.nodes[node].open.remove(unit);
                }
                self.step(node, event);
            }
            Thing::Reaches { .. } => {}
            Thing::Wakes { node } if self.nodes[node].paused_until > self.now => {
                let until = self.nodes[node].paused_until;
                self.nodes[node].alarm = Some(until);
                self.plan(until, Thing::Wakes { node });
            }
            Thing::Notices { node, life } if self.nodes[node].number == life => {
                let again = (self.now + LOOK).max(self.nodes[node].paused_until);
                self.plan(again, Thing::Notices { node, life });
                if self.nodes[node].paused_until <= self.now {
                    let storeless = self.nodes[node].storeless_until > self.now;
                    let unread = if storeless { self.nodes[node].unread + LOOK } else { Duration::ZERO };
                    self.nodes[node].unread = unread;
                    let signs = Signs { unread, ..Signs::default() };
                    self.step(node, Event::Notices(signs));
                }
            }
            Thing::Notices { .. } => {}
            Thing::Wakes { node } => {
                self.nodes[node].alarm = None;
                self.step(node, Event::Woke);
            }
            Thing::Restarts { node, life } if self.nodes[node].number == life => self.restart(node),
            Thing::Restarts { .. } => {}
            Thing::Fault => self.fault(),
        }
    }

    /// Watches are lossy while there is chaos.
    fn tell_all(&mut self) {
        for node in 0..self.nodes.len() {
            if self.is_chaos() && self.chance.in_a_hundred(30) {
                continue;
            }
            let (life, at) = (self.nodes[node].number, self.now + self.chance.millis(50));
            self.plan(at, Thing::Reaches { node, life, event: Event::Changed });
        }
    }

    fn fault(&mut self) {
        if !self.is_chaos() {
            return;
        }
        let node = self.chance.below(self.nodes.len() as u64) as usize;
        match self.chance.below(10) {
            // Nobody reaches it, or this node alone.
            8 => {
                let until = self.now + self.chance.millis(60_000);
                self.nodes.iter_mut().for_each(|node| node.storeless_until = until);
            }
            9 => self.nodes[node].storeless_until = self.now + self.chance.millis(60_000),
            6 | 7 => {
                let until = self.now + self.chance.millis(15_000);
                self.nodes[node].cut_off_until = until;
            }
            0 | 1 => {
                // A second pause does not end the first: what waits comes in its order.
                let until = self.now + self.chance.millis(25_000);
                let paused = &mut self.nodes[node].paused_until;
                *paused = until.max(*paused);
            }
            2 => self.restart(node),
            5 => {
                let life = self.nodes[node].number;
                self.plan(self.now, Thing::Reaches { node, life, event: Event::Stops });
            }
            3 => {
                let life = self.nodes[node].number;
                let drains = self.chance.in_a_hundred(50);
                self.plan(self.now, Thing::Reaches { node, life, event: Event::Drains(drains) });
                let later = self.now + self.chance.millis(20_000);
                self.plan(later, Thing::Reaches { node, life, event: Event::Drains(false) });
            }
            4 => {
                if let Some(unit) = self.nodes[node].open.keys().next().cloned() {
                    let event = Event::Fenced(unit);
                    let life = self.nodes[node].number;
                    self.plan(self.now, Thing::Reaches { node, life, event });
                }
            }
            _ => {}
        }
        let next = self.now + self.chance.millis(8000);
        self.plan(next, Thing::Fault);
    }

    fn restart(&mut self, node: usize) {
        let (settings, record) = settings(node);
        let clock = self.nodes[node].clock(self.now);
        let number = self.nodes[node].number + 1;
        let old = &mut self.nodes[node];
        (old.life, old.number, old.paused_until) = (Life::new(settings, record, clock), number, self.now);
        old.open.clear();
        old.unread = Duration::ZERO;
        self.begin(node);
    }

    /// A node acts for a unit while that is open there and the node's own deadline holds, by its own clock.
    fn acting(&self) -> BTreeMap<&UnitId, Vec<usize>> {
        let mut acting: BTreeMap<&UnitId, Vec<usize>> = BTreeMap::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let clock = node.clock(self.now).monotonic;
            let held = node.life.acts_until().is_some_and(|until| clock < until);
            let believes = self.broken == Some(Broken::KeepsWhatItBelieved) && node.life.session().is_some();
            if held || believes {
                node.open.keys().for_each(|unit| acting.entry(unit).or_default().push(number));
            }
        }
        acting
    }

    fn check(&mut self) {
        let found = self.acting().into_iter().find(|(_, nodes)| nodes.len() > 1);
        if let Some((unit, nodes)) = found
            && self.wrong.is_none()
        {
            self.wrong = Some(format!("{:?}: {unit} has {nodes:?}", self.now));
        }
        let leaders: Vec<u64> = self
            .nodes
            .iter()
            .filter(|node| node.life.acts_until().is_some_and(|until| node.clock(self.now).monotonic < until))
            .filter_map(|node| node.life.leads())
            .collect();
        if leaders.len() > 1 && self.wrong.is_none() {
            self.wrong = Some(format!("{:?}: two lead: {leaders:?}", self.now));
        }
    }

    fn play(&mut self) {
        while let Some(Reverse((at, number))) = self.agenda.pop() {
            if at > CHAOS + CALM || self.wrong.is_some() {
                break;
            }
            self.now = at;
            let thing = self.things.remove(&number).expect("what is on the agenda is kept");
            if self.coordinator.expire(at) {
                self.tell_all();
            }
            self.happen(thing);
            self.check();
        }
    }

    fn rest(&mut self) -> Result<(), String> {
        let acting: BTreeMap<UnitId, Vec<usize>> =
            self.acting().into_iter().map(|(unit, nodes)| (unit.clone(), nodes)).collect();
        let all: BTreeSet<&UnitId> = self.catalog.keys().collect();
        if acting.keys().collect::<BTreeSet<_>>() != all {
            let tenures: Vec<_> =
                self.nodes.iter().map(|node| (node.life.tenures(), node.life.membership())).collect();
            return Err(format!("not all units are owned: {acting:?} {tenures:?}"));
        }
        let mut counts = vec![0_usize; self.nodes.len()];
        acting.values().for_each(|nodes| counts[nodes[0]] += 1);
        let (least, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
        if most - least > 1 {
            return Err(format!("units are not even: {counts:?}"));
        }
        let snapshot = self.coordinator.snapshot();
        for (unit, nodes) in &acting {
            let claim = &snapshot.claims[unit];
            let node = &self.nodes[nodes[0]];
            if claim.session.as_ref() != node.life.session() || self.ledger[unit] != node.open[unit] {
                return Err(format!("{unit} runs on {nodes:?} without its claim or its epoch: {claim:?}"));
            }
        }
        Ok(())
    }
}

/// Plays a seed; what went wrong, if anything did, and what happened before.
pub(in crate::cluster) fn play(seed: u64, broken: Option<Broken>) -> Result<(), String> {
    played(seed, broken, false).map_err(|(wrong, _)| wrong)
}

/// The last that happened in a schedule that went wrong.
pub(in crate::cluster) fn trace(seed: u64) -> String {
    let trace = played(seed, None, true).err().map(|(_, trace)| trace).unwrap_or_default();
    trace[trace.len().saturating_sub(150)..].join("\n")
}

fn played(seed: u64, broken: Option<Broken>, traced: bool) -> Result<(), (String, Vec<String>)> {
    let mut world = World::new(seed, broken);
    world.trace = traced.then(Vec::new);
    world.play();
    let outcome = match world.wrong.take() {
        Some(wrong) => Err(wrong),
        None if broken.is_some() => Ok(()),
        None => world.rest(),
    };
    outcome.map_err(|wrong| (wrong, world.trace.unwrap_or_default()))
}
