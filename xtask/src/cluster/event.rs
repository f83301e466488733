//! What is done to the cluster in a round, drawn by the seed, and what has to follow.

use std::time::Duration;

use flare_promises::dice::Dice;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// kill -9 of a node.
    Kill,
    /// kill -9 of the one that leads.
    KillLeader,
    /// SIGSTOP past the lease, then SIGCONT.
    Suspend,
    /// SIGTERM.
    Stop,
    /// What a node and the store send each other is dropped.
    CutStore,
    /// The same with the coordinator.
    CutCoordinator,
    /// The same with both.
    CutBoth,
    /// The same with all other nodes.
    CutOthers,
    /// What a node sends to the store and the coordinator is dropped, and not what they send.
    CutOutward,
    /// The other way round.
    CutInward,
    /// The store ends without a word and is started again.
    RestartStore,
    /// The store ends for good, and another server that followed it takes over.
    Promote,
}

/// Where nodes find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Coordinator {
    Postgresql,
    Etcd,
}

impl Event {
    /// What a round may be, and how often.
    fn choices(coordinator: Coordinator, may_promote: bool) -> Vec<(Event, u64)> {
        let mut choices = vec![
            (Event::Kill, 3),
            (Event::KillLeader, 2),
            (Event::Suspend, 3),
            (Event::Stop, 3),
            (Event::CutStore, 2),
            (Event::CutOthers, 1),
            (Event::CutOutward, 2),
            (Event::CutInward, 2),
            (Event::RestartStore, 1),
        ];
        if coordinator == Coordinator::Etcd {
            choices.extend([(Event::CutCoordinator, 2), (Event::CutBoth, 2)]);
        }
        if may_promote {
            choices.push((Event::Promote, 1));
        }
        choices
    }

    /// Draws one.
    pub fn draw(dice: &mut Dice, coordinator: Coordinator, may_promote: bool) -> Event {
        dice.weighted(&Event::choices(coordinator, may_promote))
    }

    /// Whether a node loses all its units by it. One that reaches its coordinator gives them up when it has not reached the store for two
    /// leases.
    pub fn loses_units(self) -> bool {
        !matches!(self, Event::CutOthers | Event::RestartStore | Event::Promote)
    }

    /// How soon all units of the node have to run elsewhere.
    pub fn bound(self, lease: Duration, coordinator: Coordinator) -> Duration {
        match self {
            Event::CutStore if coordinator == Coordinator::Etcd => lease * 3,
            Event::Stop => Duration::from_secs(2),
            _ => lease * 2,
        }
    }

    /// Whether what was answered may be told again.
    pub fn disturbs(self) -> bool {
        !matches!(self, Event::Stop | Event::CutOthers)
    }

    /// In words, for the table.
    pub fn words(self) -> &'static str {
        match self {
            Event::Kill => "kill -9",
            Event::KillLeader => "kill -9 of the leader",
            Event::Suspend => "SIGSTOP past the lease",
            Event::Stop => "SIGTERM",
            Event::CutStore => "cut from the store",
            Event::CutCoordinator => "cut from the coordinator",
            Event::CutBoth => "cut from both",
            Event::CutOthers => "cut from the other nodes",
            Event::CutOutward => "cut one way, outward",
            Event::CutInward => "cut one way, inward",
            Event::RestartStore => "store restarted",
            Event::Promote => "standby promoted",
        }
    }
}
