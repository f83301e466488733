//! The leader: elected, given an epoch, and then, from what it has read since, planning. All that it remembers beyond what is
//! listed is how long the members have been what they are.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Action, Answer, Ask, Existing, Life, Moment, Question, Request, Snapshot};
use crate::cluster::keys::{
    self, Assignment, AssignmentPart, HISTORY, LEADER, LeaderRecord, PARTS, PROTOCOL,
};
use crate::cluster::plan::explain::Moved;
use crate::cluster::plan::{self, Command, Effective, Move, Node, Plan, Refusal, Unit, View};
use crate::cluster::{NodeId, NodeState, SessionId, UnitId};

/// A node that is gone is remembered for so long.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// A node that was lost gets units for balance once it has held its lease for so many times its length.
const STEADY: u32 = 3;

/// Whether the node leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leading {
    No,
    /// The key is asked for.
    Electing,
    /// The key may be this node's: the next list says so.
    Unsure {
        since: Ask,
    },
    /// The key is this node's, and its epoch is asked for.
    Elected,
    /// The key is being given back.
    Resigning,
    Leads {
        epoch: u64,
        /// Only what was listed from here on is planned over.
        since: Ask,
        /// Parts that are being written.
        writing: u32,
        /// The list and the catalog that were planned over last need no second look before this.
        planned: Option<(Ask, usize, Duration)>,
    },
}

/// How long the members have been what they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    there: BTreeMap<NodeId, Member>,
    /// Those that are gone: when that was seen. Bound: what has gone within [`REMEMBERED`].
    gone: BTreeMap<NodeId, (Duration, NodeState)>,
    changed_at: Duration,
}

#[derive(Clone, Debug, PartialEq)]
struct Member {
    session: Option<SessionId>,
    state: NodeState,
    weight: u32,
    since: Duration,
    /// It was lost without a word, or did not work, and came back.
    flapped: bool,
    stuck: bool,
}

impl Members {
    fn look(&mut self, snapshot: &Snapshot, now: Duration) {
        let mut there = BTreeMap::new();
        for (id, found) in &snapshot.nodes {
            let (state, weight) = (found.record.state, found.record.weight);
            let stuck = found.record.trouble.is_some_and(|trouble| trouble.stuck);
            let before = self.there.get(id);
            let member = match before {
                Some(member) if member.session == found.session && member.stuck && !stuck => {
                    Member { state, weight, stuck, since: now, flapped: true, ..member.clone() }
                }
                Some(member) if member.session == found.session => {
                    Member { state, weight, stuck, ..member.clone() }
                }
                _ => {
                    let last = before.map(|member| member.state);
                    let last = last.or_else(|| self.gone.get(id).map(|(_, state)| *state));
                    let flapped = last == Some(NodeState::Live);
                    Member { session: found.session.clone(), state, weight, since: now, flapped, stuck }
                }
            };
            there.insert(id.clone(), member);
        }
        if there != self.there {
            self.changed_at = now;
        }
        for (id, member) in &self.there {
            if !there.contains_key(id) {
                self.gone.insert(id.clone(), (now, member.state));
            }
        }
        self.gone.retain(|id, (at, _)| now < *at + REMEMBERED && !there.contains_key(id));
        self.there = there;
    }

    fn cooldown(&self, id: &NodeId, now: Duration, lease: Duration) -> Option<Duration> {
        let member = self.there.get(id).filter(|member| member.flapped)?;
        let left = (member.since + lease * STEADY).saturating_sub(now);
        (!left.is_zero()).then_some(left)
    }
}

impl Life {
    pub(super) fn check_leader(&mut self, ask: Ask, snapshot: &Snapshot) {
        self.members.look(snapshot, self.now.monotonic);
        let session = self.session();
        let mine = snapshot.leader.as_ref().is_some_and(|(_, _, its)| its.as_ref() == session);
        match &self.leading {
            Leading::Unsure { since } if ask < *since => self.look = true,
            Leading::Unsure { .. } | Leading::No if mine && self.may_act() => self.take_office(),
            Leading::Unsure { .. } => self.leading = Leading::No,
            Leading::Leads { since, .. } if ask >= *since && !mine => self.leading = Leading::No,
            _ => {}
        }
    }

    pub(super) fn elected(&mut self, answer: Answer) {
        if self.leading != Leading::Electing {
            return;
        }
        self.look = true;
        match answer {
            Answer::Done(Some(_)) if self.may_act() => self.take_office(),
            Answer::Conflict | Answer::Failed => self.leading = Leading::No,
            _ => self.leading = Leading::Unsure { since: self.next_ask },
        }
    }

    fn take_office(&mut self) {
        self.leading = Leading::Elected;
        self.ask(Question::LeaderEpoch, Request::Epoch);
    }

    pub(super) fn leader_epoch(&mut self, answer: Answer) {
        if self.leading != Leading::Elected {
            return;
        }
        self.look = true;
        self.leading = match answer {
            Answer::Epoch(epoch) => Leading::Leads { epoch, since: self.next_ask, writing: 0, planned: None },
            // The key is still there: the next list begins anew, and not at once.
            _ => {
                self.look_not_before = self.now.monotonic + self.settings.renew / 4;
                Leading::Unsure { since: self.next_ask }
            }
        };
    }

    /// Whatever came of it: when all are answered, everything is read again before the next plan.
    pub(super) fn part_written(&mut self, _: Answer) {
        let next_ask = self.next_ask;
        if let Leading::Leads { since, writing, .. } = &mut self.leading {
            *writing -= 1;
            *since = next_ask;
            self.look = true;
        }
    }

    pub(super) fn pursue_leading(&mut self) {
        if self.resigns() {
            return;
        }
        let Some((asked, seen)) = self.seen.clone() else { return };
        match self.leading.clone() {
            Leading::No => {
                let may = self.record.eligible
                    && self.is_registered()
                    && !self.stopping
                    && self.trouble().is_none();
                if may && seen.leader.is_none() && !seen.newer {
                    let record = LeaderRecord { protocol: PROTOCOL, node: self.settings.node.clone() };
                    let session = self.session().cloned();
                    self.leading = Leading::Electing;
                    let request =
                        Request::Create { key: LEADER.to_owned(), value: keys::write(&record), session };
                    self.ask(Question::Elect, request);
                }
            }
            Leading::Leads { epoch, since, writing: 0, planned } if asked >= since && !seen.newer => {
                let Some(catalog) = self.catalog.clone() else { return };
                let address = Arc::as_ptr(&catalog) as usize;
                let now = self.now.monotonic;
                if planned
                    .is_some_and(|(list, known, until)| list == asked && known == address && now < until)
                {
                    return;
                }
                let writing = self.plan(epoch, &seen, &catalog);
                let planned = Some((asked, address, self.plans_again()));
                let since = if writing > 0 { Ask::MAX } else { since };
                self.leading = Leading::Leads { epoch, since, writing, planned };
            }
            Leading::Leads { since, writing: 0, .. } if asked < since => self.look = true,
            _ => {}
        }
    }

    /// Writes what is to be changed; answers how many parts that are.
    fn plan(&mut self, epoch: u64, seen: &Snapshot, catalog: &BTreeMap<UnitId, Existing>) -> u32 {
        let view = self.view(epoch, seen, catalog);
        let plan = plan::plan(&view);
        self.write_plan(epoch, seen, catalog, &view, &plan)
    }

    /// What a user asks to be moved: the plan that follows, which is written unless it is only to be looked at. `None`: the
    /// node does not lead, or has not read yet what it wrote last.
    pub fn reroute(
        &mut self,
        now: Moment,
        commands: &[Command],
        dry_run: bool,
    ) -> Option<(Result<Plan, Refusal>, Vec<Action>)> {
        self.now = Moment { monotonic: now.monotonic.max(self.now.monotonic), ..now };
        self.keep_time();
        let epoch = self.leads()?;
        let (asked, seen) = self.seen.clone()?;
        let catalog = self.catalog.clone()?;
        let Leading::Leads { since, writing: 0, .. } = self.leading else { return None };
        if asked < since || seen.newer {
            return None;
        }
        let view = self.view(epoch, &seen, &catalog);
        // Those that go together are moved together.
        let first = |unit: &UnitId| catalog.get(unit).and_then(|existing| existing.with.clone());
        let commands: Vec<Command> = commands
            .iter()
            .map(|command| match command.clone() {
                Command::Move { unit, node } => Command::Move { unit: first(&unit).unwrap_or(unit), node },
                Command::Unpin { unit } => Command::Unpin { unit: first(&unit).unwrap_or(unit) },
            })
            .collect();
        let planned = plan::reroute(&view, &commands);
        if let (Ok(plan), false) = (&planned, dry_run) {
            let writing = self.write_plan(epoch, &seen, &catalog, &view, plan);
            let since = if writing > 0 { Ask::MAX } else { since };
            self.leading = Leading::Leads { epoch, since, writing, planned: None };
        }
        Some((planned, std::mem::take(&mut self.actions)))
    }

    fn write_plan(
        &mut self,
        epoch: u64,
        seen: &Snapshot,
        catalog: &BTreeMap<UnitId, Existing>,
        view: &View,
        plan: &Plan,
    ) -> u32 {
        let mut parts: BTreeMap<u8, BTreeMap<UnitId, Assignment>> =
            (0..PARTS).map(|part| (part, BTreeMap::new())).collect();
        let moves: BTreeMap<&UnitId, &Move> = plan.moves.iter().map(|step| (&step.unit, step)).collect();
        let mut decided: BTreeMap<&UnitId, Assignment> = BTreeMap::new();
        for unit in view.units.keys() {
            let before = seen.assignment(unit);
            let assignment = match moves.get(unit) {
                Some(step) => Some(self.decided(epoch, step, before, view.units[unit].effective.epoch())),
                None => before.cloned(),
            };
            decided.extend(assignment.map(|assignment| (unit, assignment)));
        }
        for (unit, existing) in catalog {
            let assignment = match &existing.with {
                None => decided.get(unit).cloned(),
                Some(first) => decided.get(first).map(|first| self.along(epoch, unit, first, seen)),
            };
            if let Some(assignment) = assignment {
                parts.entry(keys::part_of(unit)).or_default().insert(unit.clone(), assignment);
            }
        }
        let mut writing = 0;
        for (number, units) in parts {
            let leader = self.settings.node.clone();
            let part = AssignmentPart { protocol: PROTOCOL, leader, leader_epoch: epoch, units };
            let (key, value) = (keys::of_part(number), keys::write(&part));
            let request = match seen.parts.get(&number) {
                Some((_, Some(before))) if *before == part => continue,
                Some((version, _)) => Request::Replace { key, version: *version, value },
                None => Request::Create { key, value, session: None },
            };
            writing += 1;
            self.ask(Question::Part, request);
        }
        writing
    }

    /// Where a unit should be that goes where another goes.
    fn along(&self, epoch: u64, unit: &UnitId, first: &Assignment, seen: &Snapshot) -> Assignment {
        let before = seen.assignment(unit);
        if let Some(before) = before.filter(|before| before.node == first.node) {
            return Assignment { pinned: first.pinned, home: first.home.clone(), ..before.clone() };
        }
        let from = before.map(|before| before.node.clone());
        let step = Move { unit: unit.clone(), from, to: first.desired() };
        self.decided(epoch, &step, before, seen.claims.get(unit).and_then(|claim| claim.epoch))
    }

    fn decided(&self, epoch: u64, step: &Move, before: Option<&Assignment>, last: Option<u64>) -> Assignment {
        let mut history = before.map(|before| before.history.clone()).unwrap_or_default();
        let reason = step.to.reason;
        let moved = Moved {
            at: self.now.wall,
            from: step.from.clone(),
            to: step.to.node.clone(),
            epoch: last,
            reason,
        };
        history.insert(0, moved);
        history.truncate(HISTORY);
        Assignment {
            node: step.to.node.clone(),
            reason,
            pinned: step.to.pinned,
            home: step.to.home.clone(),
            at: self.now.wall,
            leader_epoch: epoch,
            by: self.settings.node.clone(),
            history,
        }
    }

    /// What the planner looks at.
    fn view(&self, epoch: u64, seen: &Snapshot, catalog: &BTreeMap<UnitId, Existing>) -> View {
        let now = self.now.monotonic;
        let nodes = seen.nodes.iter().map(|(id, found)| {
            let record = &found.record;
            let node = Node {
                state: record.state,
                weight: record.weight,
                protocol: record.protocol,
                load: Some(record.load.cpu),
                gives_back: record.gives_back,
                cooldown: self.members.cooldown(id, now, self.settings.lease),
                trouble: record.trouble,
            };
            (id.clone(), node)
        });
        let units = catalog.iter().filter(|(_, existing)| existing.with.is_none()).map(|(id, existing)| {
            let effective = seen.claims.get(id).map_or(Effective::Nobody, |claim| Effective::Held {
                node: claim.node.clone(),
                epoch: claim.epoch,
            });
            let desired = seen.assignment(id).map(Assignment::desired);
            (id.clone(), Unit { weight: existing.weight, origin: existing.origin, desired, effective })
        });
        let settles_in = (self.members.changed_at + self.settings.rebalance_delay).saturating_sub(now);
        View {
            leader_epoch: epoch,
            protocol: PROTOCOL,
            nodes: nodes.collect(),
            units: units.collect(),
            settles_in: (!settles_in.is_zero()).then_some(settles_in),
            moves: self.settings.moves,
        }
    }

    /// What a plan would be made of now, whoever leads: for explanations.
    pub fn view_as_seen(&self) -> Option<View> {
        Some(self.view(self.leads().unwrap_or_default(), self.seen()?, self.catalog.as_ref()?))
    }

    /// When time alone makes another plan: the members have settled, or a node has held its lease.
    fn plans_again(&self) -> Duration {
        let now = self.now.monotonic;
        let settled = self.members.changed_at + self.settings.rebalance_delay;
        let steady = self.members.there.values().map(|member| member.since + self.settings.lease * STEADY);
        let times = steady.chain([settled]).filter(|at| *at > now);
        times.fold(now + self.settings.lease, Duration::min)
    }

    pub(super) fn leader_wakes(&self) -> Option<Duration> {
        // What it wrote last is read first, and whoever reads is woken by the answer.
        let has_read =
            |since: &Ask| self.seen.as_ref().is_some_and(|(asked, seen)| asked >= since && !seen.newer);
        match &self.leading {
            Leading::Leads { planned: Some((_, _, until)), writing: 0, since, .. }
                if self.may_act() && has_read(since) =>
            {
                Some(*until)
            }
            _ => None,
        }
    }
}
