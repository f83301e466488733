//! In: nothing. Out: the six clients of the demo, two of which are the targets of the demo of a bridge: what each hears of, how it subscribes, and how it behaves. Pure.

use std::time::Duration;

use serde_json::{Value, json};

use super::shop::LOW;
use super::thing::{Kind, Thing};

/// A client, by how it behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Answers at once.
    Healthy,
    /// Takes its time for every request.
    Slow,
    /// Works, refuses, works, hangs up, and so on.
    Flapping,
    /// Has no address of its own, and asks for what there is.
    Passive,
    /// Wants only some of the documents.
    Filtered,
    /// Takes nothing, ever.
    Failing,
}

/// What a client does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Takes it.
    Up,
    /// Answers 503.
    Refusing,
    /// Closes the connection without an answer.
    HangingUp,
    /// Answers 500.
    Broken,
}

/// The flapping client's life, again and again.
const PHASES: [(Mood, Duration); 4] = [
    (Mood::Up, Duration::from_secs(3)),
    (Mood::Refusing, Duration::from_secs(3)),
    (Mood::Up, Duration::from_secs(4)),
    (Mood::HangingUp, Duration::from_secs(2)),
];

impl Role {
    /// All of them, in the order they are shown in.
    pub const ALL: [Role; 6] =
        [Role::Healthy, Role::Slow, Role::Flapping, Role::Passive, Role::Filtered, Role::Failing];

    /// Those that are told of what Flare polls.
    pub const BRIDGED: [Role; 2] = [Role::Healthy, Role::Slow];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Role::Healthy => "warehouse",
            Role::Slow => "accounting",
            Role::Flapping => "price-board",
            Role::Passive => "marketing",
            Role::Filtered => "reorder-desk",
            Role::Failing => "fax-machine",
        }
    }

    /// How it behaves, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Role::Healthy => "healthy: takes orders at once",
            Role::Slow => "slow: takes orders in its own time",
            Role::Flapping => "flapping: takes products, refuses, hangs up, and so on",
            Role::Passive => "passive: asks for carts by itself",
            Role::Filtered => "filtered: products that run low, and no others",
            Role::Failing => "failing: answers 500 to every product, so Flare gives up",
        }
    }

    /// What it hears of.
    pub fn kind(self) -> Kind {
        match self {
            Role::Healthy | Role::Slow => Kind::Order,
            Role::Flapping | Role::Filtered | Role::Failing => Kind::Product,
            Role::Passive => Kind::Cart,
        }
    }

    /// Whether it should have this document. Written here once more, and not asked of Flare, because this is what the
    /// demo checks Flare against.
    pub fn wants(self, thing: Thing, document: &Value) -> bool {
        let low = || document["stock"].as_u64().is_some_and(|stock| stock < LOW);
        thing.kind == self.kind() && (self != Role::Filtered || low())
    }

    /// Its subscription, as the API wants it, for a client that listens at `url`.
    pub fn subscription(self, url: &str) -> Value {
        let mut body =
            json!({"endpoint": {"url": url}, "data": {"client": self.name()}, "start": "beginning"});
        match self {
            Role::Healthy => {}
            Role::Slow => body["delivery"] = json!({"concurrency": 2}),
            // Soon enough again for someone who watches.
            Role::Flapping => {
                body["delivery"] = json!({"retry": {"interval": "500ms", "maxInterval": "2s", "ttl": "1h"}});
            }
            // Given up at once, so that it is seen.
            Role::Failing => body["delivery"] = json!({"retry": {"quantity": 1}}),
            Role::Passive => body["mode"] = "passive".into(),
            Role::Filtered => body["filter"] = format!("document.stock < {LOW}").into(),
        }
        body
    }

    /// Its producer, as the API wants it, for a client that listens at `url`.
    pub fn producer(self, url: &str) -> Value {
        let mut body = json!({"target": {"type": "http", "url": url}, "metadata": {"client": self.name()},
            "start": "beginning"});
        if self == Role::Slow {
            body["delivery"] = json!({"concurrency": 2});
        }
        body
    }

    /// What it does with a request after this time; in the end, everybody is up who ever is.
    pub fn mood(self, elapsed: Duration, ending: bool) -> Mood {
        if self == Role::Failing {
            return Mood::Broken;
        }
        if self != Role::Flapping || ending {
            return Mood::Up;
        }
        let round: Duration = PHASES.iter().map(|(_, time)| *time).sum();
        let mut left = Duration::from_nanos((elapsed.as_nanos() % round.as_nanos()) as u64);
        for (mood, time) in PHASES {
            match left.checked_sub(time) {
                Some(rest) => left = rest,
                None => return mood,
            }
        }
        Mood::Up
    }

    /// How long it thinks about a request; `chance` is from 0 to 1.
    pub fn thinks(self, chance: f64) -> Duration {
        match self {
            Role::Slow => Duration::from_millis(150 + (300.0 * chance) as u64),
            _ => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flapping_client_goes_through_its_phases_again_and_again() {
        let mood = |seconds: f64| Role::Flapping.mood(Duration::from_secs_f64(seconds), false);
        for round in [0.0, 12.0, 1200.0] {
            let moods = [0.0, 2.9, 3.0, 5.9, 6.0, 9.9, 10.0, 11.9].map(|at| mood(round + at));
            use Mood::{HangingUp, Refusing, Up};
            assert_eq!(moods, [Up, Up, Refusing, Refusing, Up, Up, HangingUp, HangingUp], "{round}");
        }
        assert_eq!(Role::Flapping.mood(Duration::from_secs(4), true), Mood::Up);
        assert_eq!(Role::Healthy.mood(Duration::from_secs(4), false), Mood::Up);
        assert_eq!(Role::Failing.mood(Duration::from_secs(4), true), Mood::Broken);
    }

    #[test]
    fn only_the_slow_one_thinks() {
        for role in Role::ALL {
            assert_eq!(role.thinks(0.5) > Duration::ZERO, role == Role::Slow, "{role:?}");
        }
    }
}
