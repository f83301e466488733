//! What a schedule is made of, drawn from its seed: most have a little of everything, the others much of something that bugs
//! like to live in. A profile only says how often things happen; nothing happens in one that cannot happen in another.

use std::time::Duration;

use flare_promises::dice::Dice;
use flare_promises::mood::Mood;
use flare_promises::wish::{Aspect, Filter, Wish};

use crate::cue::Moment;
use crate::incident::Incident;
use crate::operate::Kind;
use crate::weather::Weather;

/// How often what happens.
#[derive(Clone, Debug)]
pub struct Profile {
    pub name: &'static str,
    /// How many times it goes on after a pause, at least and at most.
    pub rounds: (u64, u64),
    /// How many documents there are.
    pub documents: u64,
    /// Of a hundred things that origins say so many are deletes.
    pub deletes: u64,
    /// How many lanes resources have.
    pub lanes: &'static [u64],
    pub operations: &'static [(Kind, u64)],
    /// What a PATCH changes.
    pub aspects: &'static [Aspect],
    pub moods: &'static [(Mood, u64)],
    pub incidents: &'static [(Incident, u64)],
    /// How long it is at most until something else happens, in milliseconds.
    pub pauses: &'static [u64],
    /// How long leases last, in milliseconds.
    pub leases: &'static [u64],
    /// How many take from one subscription at once.
    pub pulling: u8,
    taste: Taste,
}

/// What subscriptions are like.
#[derive(Clone, Copy, Debug)]
enum Taste {
    Anything,
    /// Most want everything, as it is now, and are called.
    Plain,
    /// Most are asked for what they have.
    Passive,
    /// Most are served by several threads that share what little may be open.
    Shared,
}

const EVERYTHING: &[(Kind, u64)] = &[
    (Kind::Say, 50),
    (Kind::Open, 2),
    (Kind::Close, 1),
    (Kind::Subscribe, 6),
    (Kind::Unsubscribe, 2),
    (Kind::Change, 14),
    (Kind::Stand, 8),
    (Kind::Replay, 6),
    (Kind::Letters, 5),
    (Kind::Mood, 12),
    (Kind::Pull, 14),
    (Kind::Drive, 3),
    (Kind::EndLeases, 2),
];

/// Little but what origins say, and operators who look.
const WORDS: &[(Kind, u64)] = &[
    (Kind::Say, 70),
    (Kind::Subscribe, 2),
    (Kind::Change, 3),
    (Kind::Stand, 2),
    (Kind::Replay, 4),
    (Kind::Letters, 20),
    (Kind::Mood, 12),
    (Kind::Pull, 4),
];

/// Clients that take, and take again.
const TAKING: &[(Kind, u64)] = &[
    (Kind::Say, 45),
    (Kind::Subscribe, 3),
    (Kind::Change, 3),
    (Kind::Stand, 2),
    (Kind::Replay, 3),
    (Kind::Letters, 3),
    (Kind::Mood, 3),
    (Kind::Pull, 60),
    (Kind::Drive, 3),
    (Kind::EndLeases, 4),
];

/// Sweeps that meet.
const SWEEPING: &[(Kind, u64)] = &[
    (Kind::Say, 30),
    (Kind::Subscribe, 6),
    (Kind::Unsubscribe, 2),
    (Kind::Change, 25),
    (Kind::Stand, 4),
    (Kind::Replay, 8),
    (Kind::Letters, 3),
    (Kind::Mood, 6),
    (Kind::Pull, 6),
];

const MOODS: &[(Mood, u64)] = &[
    (Mood::Healthy, 4),
    (Mood::Slow, 6),
    (Mood::Flaky, 8),
    (Mood::Failing, 2),
    (Mood::Hanging, 1),
    (Mood::Gone, 1),
    (Mood::Throttling, 1),
];

/// Much is open for long.
const DAWDLING: &[(Mood, u64)] =
    &[(Mood::Healthy, 3), (Mood::Slow, 12), (Mood::Flaky, 4), (Mood::Failing, 1), (Mood::Hanging, 4)];

const SILENCE: &[(Mood, u64)] = &[(Mood::Healthy, 2), (Mood::Slow, 1), (Mood::Flaky, 2), (Mood::Hanging, 8)];

const SOMETIMES: &[(Incident, u64)] = &[
    (Incident::None, 80),
    (Incident::Crash, 8),
    (Incident::CrashAt(Moment::Begins), 2),
    (Incident::CrashAt(Moment::Ends), 1),
    (Incident::CrashAt(Moment::Records), 1),
    (Incident::CrashAt(Moment::Commits), 1),
    (Incident::Stop, 3),
    (Incident::Pause, 3),
    (Incident::Weather(Weather::Fair), 4),
    (Incident::Weather(Weather::Slow), 2),
    (Incident::Weather(Weather::Failing), 3),
    (Incident::Weather(Weather::Full), 1),
    (Incident::Clock(3_600_000), 1),
    (Incident::Clock(-7_200_000), 1),
];

/// Crashes, where they hurt.
const CRASHES: &[(Incident, u64)] = &[
    (Incident::None, 55),
    (Incident::Crash, 5),
    (Incident::CrashAt(Moment::Begins), 12),
    (Incident::CrashAt(Moment::Ends), 8),
    (Incident::CrashAt(Moment::Records), 12),
    (Incident::CrashAt(Moment::Commits), 4),
    (Incident::Stop, 3),
    (Incident::Weather(Weather::Fair), 2),
    (Incident::Weather(Weather::Slow), 1),
];

/// A store in trouble, and whoever loses patience with it.
const STORMS: &[(Incident, u64)] = &[
    (Incident::None, 50),
    (Incident::CrashAt(Moment::Ends), 6),
    (Incident::CrashAt(Moment::Records), 8),
    (Incident::Stop, 3),
    (Incident::Pause, 2),
    (Incident::Weather(Weather::Fair), 8),
    (Incident::Weather(Weather::Slow), 12),
    (Incident::Weather(Weather::Failing), 6),
    (Incident::Weather(Weather::Full), 2),
];

/// What happens to nodes that are several: a little of everything.
const AMONG_OTHERS: &[(Incident, u64)] = &[
    (Incident::None, 60),
    (Incident::Crash, 3),
    (Incident::CrashAt(Moment::Begins), 2),
    (Incident::CrashAt(Moment::Ends), 1),
    (Incident::CrashAt(Moment::Records), 2),
    (Incident::CrashAt(Moment::Commits), 1),
    (Incident::Stop, 3),
    (Incident::Drain, 3),
    (Incident::Suspend, 2),
    (Incident::SuspendAt(Moment::Begins), 2),
    (Incident::SuspendAt(Moment::Records), 2),
    (Incident::Cut, 5),
    (Incident::CoordinatorDown, 1),
    (Incident::CoordinatorRestored, 1),
    (Incident::StoreRestarts, 1),
    (Incident::Replace, 1),
    (Incident::Weather(Weather::Fair), 4),
    (Incident::Weather(Weather::Slow), 2),
    (Incident::Weather(Weather::Failing), 2),
    (Incident::Clock(3_600_000), 1),
    (Incident::Clock(-7_200_000), 1),
];

/// Nodes that stand still for longer than their lease, where that hurts.
const SUSPENDED: &[(Incident, u64)] = &[
    (Incident::None, 40),
    (Incident::Suspend, 4),
    (Incident::SuspendAt(Moment::Begins), 6),
    (Incident::SuspendAt(Moment::Ends), 3),
    (Incident::SuspendAt(Moment::Records), 8),
    (Incident::SuspendAt(Moment::Commits), 2),
    (Incident::Replace, 6),
    (Incident::Cut, 2),
];

/// Nodes that are cut off, and whoever loses patience with them.
const PARTED: &[(Incident, u64)] = &[
    (Incident::None, 40),
    (Incident::Cut, 16),
    (Incident::CoordinatorDown, 2),
    (Incident::CoordinatorRestored, 3),
    (Incident::StoreRestarts, 2),
    (Incident::Stop, 3),
    (Incident::Drain, 3),
    (Incident::Crash, 3),
];

impl Profile {
    /// The same for several nodes: they have more time, since leases have to end.
    pub fn draw_for_several(dice: &mut Dice) -> Profile {
        let mut drawn = Profile::draw(dice);
        drawn.incidents = *dice.pick(&[AMONG_OTHERS, SUSPENDED, PARTED]);
        drawn.pauses = &[0, 3, 10, 10, 50, 300, 1_000];
        drawn.rounds = (10, 50);
        drawn
    }

    pub fn draw(dice: &mut Dice) -> Profile {
        let anything = Profile {
            name: "anything",
            rounds: (10, 70),
            documents: 6,
            deletes: 25,
            lanes: &[1, 2, 3, 8],
            operations: EVERYTHING,
            aspects: &Aspect::ALL,
            moods: MOODS,
            incidents: SOMETIMES,
            pauses: &[0, 3, 10, 10, 50, 50, 300, 1_500],
            leases: &[30, 300, 3_000],
            pulling: 2,
            taste: Taste::Anything,
        };
        match dice.below(20) {
            0..6 => anything,
            // Few documents that live and die often, clients that dawdle, and crashes.
            6..11 => Profile {
                name: "lives",
                documents: dice.between(1, 3),
                deletes: 45,
                lanes: &[1, 1, 2],
                operations: WORDS,
                moods: DAWDLING,
                incidents: CRASHES,
                pauses: &[0, 3, 10, 20, 50, 100],
                taste: Taste::Plain,
                ..anything
            },
            // Clients that take, forget, and say late what became of it.
            11..14 => Profile {
                name: "leases",
                documents: dice.between(1, 4),
                operations: TAKING,
                pauses: &[0, 3, 10, 10, 50, 50],
                leases: &[10, 20, 40, 300],
                pulling: 4,
                taste: Taste::Passive,
                ..anything
            },
            // What is gone through is meanwhile decided otherwise. Soon over: whatever comes later would go through it again
            // and set right what was left out.
            14..17 => Profile {
                name: "sweeps",
                rounds: (4, 24),
                documents: dice.between(4, 10),
                deletes: 15,
                operations: SWEEPING,
                aspects: &[Aspect::Filter, Aspect::Filter, Aspect::Filter, Aspect::When, Aspect::Shards],
                pauses: &[0, 3, 10, 20, 50, 100],
                ..anything
            },
            // Clients that hang, and threads that share the little that is left for them.
            17 => Profile { name: "silence", moods: SILENCE, taste: Taste::Shared, ..anything },
            // Answers come, and what they say is not written yet.
            _ => Profile {
                name: "storms",
                documents: dice.between(2, 6),
                deletes: 35,
                operations: WORDS,
                moods: DAWDLING,
                incidents: STORMS,
                pauses: &[0, 3, 10, 50, 50, 300],
                ..anything
            },
        }
    }

    /// What a subscription asks for.
    pub fn wish(&self, dice: &mut Dice, hosts: usize, lanes: u64) -> Wish {
        let mut wish = Wish::draw(dice, hosts, lanes);
        match self.taste {
            Taste::Anything => {}
            Taste::Plain if dice.percent(70) => {
                (wish.passive, wish.all, wish.filter) = (false, false, Filter::Everything);
                wish.concurrency = wish.concurrency.max(2);
            }
            Taste::Plain => {}
            Taste::Passive => wish.passive |= dice.percent(85),
            Taste::Shared if dice.percent(85) => {
                (wish.passive, wish.quantity, wish.concurrency) = (false, 0, dice.between(2, 4));
                wish.shards = lanes.min(wish.concurrency);
            }
            Taste::Shared => {}
        }
        wish
    }

    pub fn mood(&self, dice: &mut Dice) -> Mood {
        dice.weighted(self.moods)
    }

    /// How long it is until something else happens: mostly a few milliseconds, sometimes nothing, sometimes long.
    pub fn pause(&self, dice: &mut Dice) -> Duration {
        let most = *dice.pick(self.pauses);
        Duration::from_millis(dice.below(most + 1))
    }
}
