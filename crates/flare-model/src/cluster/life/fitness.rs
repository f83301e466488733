//! Whether the node works. A lease says that its process lives, and no more: what the node notices of itself comes in
//! ([`Signs`]), what it says of itself to the others goes out ([`Trouble`]).
//!
//! - After one lease of a sign it may not work: it keeps what it has, gets no more, and does not stand for election.
//! - After two it is stuck: the leader gives its units to nodes without any trouble, and once they are assigned elsewhere it cuts them and
//!   gives their claims back. Where there is no such node they stay: what comes back finds everything as it was, and nothing is in
//!   doubt. All nodes of a store that is away are in trouble before the first of them is stuck, so nothing is shuffled then.
//! - As soon as the signs are gone it is stuck no more, and works again once none has lasted half a lease for a whole one: of nodes for which the
//!   store comes back, the first does not get what the others had. It gets nothing for balance for three more, as one that was lost.
//! - A node that hears nothing of itself for two leases renews no more: nobody would do what it is told about units.

use std::collections::BTreeSet;
use std::time::Duration;

use super::leading::Leading;
use super::{Life, Question, Request};
use crate::cluster::keys::{self, Ailment, Trouble};
use crate::cluster::{NodeState, UnitId};

/// After so many leases of a sign the node is stuck.
const STUCK: u32 = 2;

/// What a node notices of itself: for how long something is so, as far as it was looked at. Zero: it is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// The store has answered nothing that was read.
    pub unread: Duration,
    /// There is something to record, and nothing became durable.
    pub unrecorded: Duration,
    /// It is tried whether the store takes anything, because this node or another is in trouble, and it does not.
    pub unwritten: Duration,
    /// A delivery thread does not answer.
    pub silent: Duration,
    /// The units that such threads have.
    pub silenced: BTreeSet<UnitId>,
}

/// What follows from the signs so far.
#[derive(Clone, Debug)]
pub(super) struct Fitness {
    signs: Signs,
    /// When those came.
    heard_at: Duration,
    trouble: Option<Trouble>,
    /// Since when there are none, while there is trouble still.
    well_since: Option<Duration>,
}

impl Fitness {
    pub fn new(now: Duration) -> Fitness {
        Fitness { signs: Signs::default(), heard_at: now, trouble: None, well_since: None }
    }

    pub fn hears(&mut self, signs: Signs, now: Duration) {
        (self.signs, self.heard_at) = (signs, now);
    }

    /// Looks at the signs.
    pub fn look(&mut self, now: Duration, lease: Duration) {
        let is_well = self.worst(now, lease, lease / 2).is_none();
        let Some(before) = self.trouble.or(self.worst(now, lease, lease)) else { return };
        if !is_well {
            // Whoever was in trouble stays in it, and is stuck only as long as a sign says so.
            let worst = self.worst(now, lease, lease);
            self.trouble = worst.or(Some(Trouble { stuck: false, ..before }));
            self.well_since = None;
            return;
        }
        let since = *self.well_since.get_or_insert(now);
        self.trouble = (now < since + lease).then_some(Trouble { stuck: false, ..before });
        self.well_since = self.trouble.map(|_| since);
    }

    /// The worst of what has lasted that long.
    fn worst(&self, now: Duration, lease: Duration, least: Duration) -> Option<Trouble> {
        let Signs { unread, unrecorded, unwritten, silent, .. } = self.signs;
        let silence = now.saturating_sub(self.heard_at);
        let signs = [
            (Ailment::Silence, silence, least),
            (Ailment::Thread, silent, least),
            (Ailment::Store, unread, least),
            (Ailment::Records, unrecorded, least),
            // It is tried only once somebody is in trouble, and has to be known before that one is stuck.
            (Ailment::Writes, unwritten, least / 2),
        ];
        let counting = signs.into_iter().filter(|(_, lasted, counts)| lasted >= counts);
        let worst = counting.rev().max_by_key(|(_, lasted, _)| *lasted >= lease * STUCK);
        worst.map(|(ailment, lasted, _)| Trouble { ailment, stuck: lasted >= lease * STUCK })
    }

    /// Whether anything was heard lately enough for the node to be one that does what it is told.
    fn is_awake(&self, now: Duration, lease: Duration) -> bool {
        now < self.heard_at + lease * STUCK
    }

    /// When time alone changes something.
    fn wakes(&self, now: Duration, lease: Duration) -> Option<Duration> {
        let silence = [self.heard_at + lease, self.heard_at + lease * STUCK];
        let well = self.well_since.map(|since| since + lease);
        silence.into_iter().chain(well).filter(|at| *at > now).min()
    }
}

impl Life {
    /// What keeps the node from working, if anything does.
    pub fn trouble(&self) -> Option<Trouble> {
        self.fitness.trouble
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.fitness.trouble.is_some_and(|trouble| trouble.stuck)
    }

    /// Whether it does what it is told, as far as is known.
    pub(super) fn is_awake(&self) -> bool {
        self.fitness.is_awake(self.now.monotonic, self.settings.lease)
    }

    /// Whether a unit that another is to have cannot be finished and recorded: it is cut rather than drained.
    pub(super) fn cannot_finish(&self, unit: &UnitId) -> bool {
        let assignment = self.seen().and_then(|seen| seen.assignment(unit));
        if assignment.is_none_or(|assignment| assignment.node == self.settings.node) {
            return false;
        }
        let of_store = |trouble: Trouble| trouble.stuck && trouble.ailment.is_of_store();
        self.fitness.trouble.is_some_and(of_store)
            || self.is_stuck() && self.fitness.signs.silenced.contains(unit)
    }

    /// A leader that is stuck knows no new units, and its epoch is the last it gets: it leaves that to another, if there is one that works.
    pub(super) fn resigns(&mut self) -> bool {
        let (Leading::Leads { writing: 0, .. }, true) = (&self.leading, self.is_stuck()) else {
            return false;
        };
        let Some((_, seen)) = &self.seen else { return false };
        let could = |record: &keys::NodeRecord| {
            record.eligible && record.trouble.is_none() && record.state == NodeState::Live
        };
        let others = seen.nodes.iter().filter(|(id, _)| **id != self.settings.node);
        let another = others.map(|(_, found)| &found.record).any(could);
        let key = seen.leader.clone().filter(|(.., session)| session.as_ref() == self.session());
        let (true, Some((_, version, _))) = (another, key) else { return false };
        self.leading = Leading::Resigning;
        self.ask(Question::Resign, Request::Delete { key: keys::LEADER.to_owned(), version });
        true
    }

    /// Whatever came of it: the next list says whose the key is.
    pub(super) fn resigned(&mut self) {
        if self.leading == Leading::Resigning {
            self.leading = Leading::Unsure { since: self.next_ask };
            self.look = true;
        }
    }

    pub(super) fn fitness_wakes(&self) -> Option<Duration> {
        self.fitness.wakes(self.now.monotonic, self.settings.lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(10);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn trouble(ailment: Ailment, stuck: bool) -> Option<Trouble> {
        Some(Trouble { ailment, stuck })
    }

    /// What is said after signs that came at these seconds.
    fn said(signs: impl Fn(u64) -> Signs, until: u64) -> Vec<Option<Trouble>> {
        let mut fitness = Fitness::new(Duration::ZERO);
        let mut said = Vec::new();
        for second in 0..=until {
            fitness.hears(signs(second), seconds(second));
            fitness.look(seconds(second), LEASE);
            said.push(fitness.trouble);
        }
        said
    }

    #[test]
    fn what_lasts_a_lease_is_said_and_what_lasts_two_is_certain() {
        let signs = |second| Signs { unrecorded: seconds(second), ..Signs::default() };
        let said = said(signs, 25);
        assert_eq!((said[9], said[10]), (None, trouble(Ailment::Records, false)));
        assert_eq!((said[19], said[20]), (trouble(Ailment::Records, false), trouble(Ailment::Records, true)));
    }

    #[test]
    fn a_node_works_again_once_it_was_well_for_a_lease() {
        let signs = |second| match second {
            0..=30 => Signs { unread: seconds(second), ..Signs::default() },
            // It answers once, and then not for long.
            35..=50 => Signs { unread: seconds(second - 35), ..Signs::default() },
            _ => Signs::default(),
        };
        let said = said(signs, 70);
        let (stuck, maybe) = (trouble(Ailment::Store, true), trouble(Ailment::Store, false));
        assert_eq!((said[30], said[31], said[44], said[60]), (stuck, maybe, maybe, maybe));
        assert_eq!(said[61], None, "since second 51 it was well");
    }

    #[test]
    fn what_is_tried_because_others_are_in_trouble_is_said_before_they_are_stuck() {
        let signs = |second: u64| Signs { unwritten: seconds(second.saturating_sub(11)), ..Signs::default() };
        let said = said(signs, 19);
        assert_eq!((said[15], said[16]), (None, trouble(Ailment::Writes, false)));
    }

    #[test]
    fn a_node_that_hears_nothing_of_itself_says_so_and_is_asleep_after_two_leases() {
        let mut fitness = Fitness::new(Duration::ZERO);
        assert_eq!(fitness.wakes(Duration::ZERO, LEASE), Some(LEASE));
        fitness.look(seconds(10), LEASE);
        assert_eq!(fitness.trouble, trouble(Ailment::Silence, false));
        assert!(fitness.is_awake(seconds(19), LEASE) && !fitness.is_awake(seconds(20), LEASE));
        fitness.look(seconds(20), LEASE);
        assert_eq!(fitness.trouble, trouble(Ailment::Silence, true));
        fitness.hears(Signs::default(), seconds(21));
        assert!(fitness.is_awake(seconds(21), LEASE));
        fitness.look(seconds(21), LEASE);
        assert_eq!(fitness.wakes(seconds(22), LEASE), Some(seconds(31)));
    }

    #[test]
    fn the_sign_that_is_certain_is_the_one_that_is_said() {
        let mut fitness = Fitness::new(Duration::ZERO);
        let signs = Signs { unread: seconds(12), silent: seconds(20), ..Signs::default() };
        fitness.hears(signs, Duration::ZERO);
        fitness.look(Duration::ZERO, LEASE);
        assert_eq!(fitness.trouble, trouble(Ailment::Thread, true));
    }
}
