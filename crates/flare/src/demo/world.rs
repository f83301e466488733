//! In: what the parts of the demo do. Out: what they share: the truth, and each client's inbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use flare_core::door::{Chance, Clock};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;

use super::inbox::{Gap, Inbox, Notification, Truth};
use super::role::{Mood, Role};
use super::shop::Change;
use super::thing::Thing;

/// What the parts of a demo share.
pub struct World {
    clock: Arc<dyn Clock>,
    chance: Chance,
    /// Who takes part.
    pub cast: &'static [Role],
    began: Duration,
    truth: Mutex<Truth>,
    inboxes: [Mutex<Inbox>; Role::ALL.len()],
    /// Whether the shop is closed and everybody is to catch up.
    ending: AtomicBool,
    /// What the origin heard.
    pub origin: Origin,
    /// How often Flare asked for the list of orders, where there is one.
    pub polls: Polls,
}

/// How often Flare asked for the list of orders.
#[derive(Debug, Default)]
pub struct Polls {
    /// In all.
    pub asked: AtomicU64,
    /// When it was as before.
    pub unchanged: AtomicU64,
}

/// The same, at one moment.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Polled {
    /// In all.
    pub asked: u64,
    /// When it was as before.
    pub unchanged: u64,
}

/// What became of the origin's changes.
#[derive(Debug, Default)]
pub struct Origin {
    /// Those that were news to Flare.
    pub changes: AtomicU64,
    /// Those that were not, such as one that was sent twice.
    pub repeats: AtomicU64,
    /// Those that Flare did not take.
    pub refused: AtomicU64,
}

/// How one client stands.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// What the client is called.
    pub client: &'static str,
    /// How it behaves.
    pub role: Role,
    /// What it does with requests at this moment.
    pub now: &'static str,
    /// What Flare calls its subscription.
    pub status: String,
    /// How many notifications Flare has delivered.
    pub delivered: u64,
    /// How many documents it lacks, as Flare counts.
    pub waiting: u64,
    /// How many attempts have failed, as Flare counts.
    pub failures: u64,
    /// How many documents Flare has given up.
    pub dead_letters: u64,
    /// Requests that it refused, left unanswered or gave back, on purpose.
    pub refused: u64,
    /// Creates, updates and deletes that it took.
    pub actions: [u64; 3],
    /// How many documents it has.
    pub documents: usize,
    /// Notifications that its filter should have kept away.
    pub unwanted: u64,
    /// Milliseconds from the origin to the client: the median of the last ones.
    pub latency_ms: Option<f64>,
    /// How it differs from what it should have.
    pub gap: Gap,
    /// What happened last.
    pub last: String,
}

/// How everything stands.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Seconds since the shop opened.
    pub seconds: u64,
    /// Changes that were news.
    pub changes: u64,
    /// Changes that were not.
    pub repeats: u64,
    /// Changes that Flare did not take.
    pub refused: u64,
    /// Documents that exist.
    pub documents: usize,
    /// How often Flare asked for them, where it polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polls: Option<Polled>,
    /// The clients.
    pub clients: Vec<Standing>,
}

impl World {
    /// Nothing has happened yet.
    pub fn new(clock: Arc<dyn Clock>, seed: u64, cast: &'static [Role]) -> World {
        World {
            began: clock.monotonic(),
            clock,
            chance: Chance::from_seed(seed),
            cast,
            truth: Mutex::default(),
            inboxes: Default::default(),
            ending: AtomicBool::new(false),
            origin: Origin::default(),
            polls: Polls::default(),
        }
    }

    /// How long this has been going on.
    pub fn elapsed(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.began)
    }

    /// A number from 0 to 1.
    pub fn chance(&self) -> f64 {
        self.chance.unit()
    }

    /// From now on everybody is to catch up.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// What a client does with a request now.
    pub fn mood(&self, role: Role) -> Mood {
        role.mood(self.elapsed(), self.ending.load(Ordering::Relaxed))
    }

    /// The origin is about to say this. Before, not after: a client may hear of it before the origin has its answer.
    pub fn say(&self, change: &Change) {
        self.truth.lock().note(change, self.elapsed());
    }

    /// A client is told.
    pub fn tell(&self, role: Role, notification: Notification) {
        let (truth, now) = (self.truth.lock(), self.elapsed());
        self.inboxes[role as usize].lock().take(role, notification, &truth, now);
    }

    /// A client does not take a request.
    pub fn refuse(&self, role: Role, how: &str, thing: Option<Thing>) {
        self.inboxes[role as usize].lock().refuse(how, thing);
    }

    /// Whether every client that takes anything has what it should.
    pub fn is_complete(&self) -> bool {
        let truth = self.truth.lock();
        let mut taking = self.cast.iter().filter(|role| **role != Role::Failing);
        taking.all(|role| self.inboxes[*role as usize].lock().gap(*role, &truth).is_none())
    }

    /// How everything stands; `status` is what Flare says of a client's subscription.
    pub fn snapshot<'v>(&self, status: impl Fn(Role) -> Option<&'v Value>) -> Snapshot {
        let truth = self.truth.lock();
        let clients = self.cast.iter().map(|&role| {
            let inbox = self.inboxes[role as usize].lock();
            let said = status(role).unwrap_or(&Value::Null);
            let now = match (role, self.mood(role)) {
                (Role::Passive, _) => "asking",
                (Role::Slow, _) => "slow",
                (_, Mood::Up) => "up",
                (_, Mood::Refusing) => "503",
                (_, Mood::HangingUp) => "hangs up",
                (_, Mood::Broken) => "500",
            };
            Standing {
                client: role.name(),
                role,
                now,
                status: said["status"].as_str().unwrap_or("not there").to_owned(),
                delivered: said["delivered"].as_u64().unwrap_or(0),
                waiting: said["feed"]["lagging"].as_u64().unwrap_or(0),
                failures: said["failed"].as_u64().unwrap_or(0),
                dead_letters: said["feed"]["deadLetters"].as_u64().unwrap_or(0),
                refused: inbox.failures,
                actions: inbox.actions,
                documents: inbox.len(),
                unwanted: inbox.unwanted,
                latency_ms: inbox.latency().map(|took| took.as_secs_f64() * 1000.0),
                gap: inbox.gap(role, &truth),
                last: inbox.last.clone(),
            }
        });
        let clients = clients.collect();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            seconds: self.elapsed().as_secs(),
            changes: count(&self.origin.changes),
            repeats: count(&self.origin.repeats),
            refused: count(&self.origin.refused),
            documents: truth.len(),
            polls: (*self.cast == Role::BRIDGED)
                .then(|| Polled { asked: count(&self.polls.asked), unchanged: count(&self.polls.unchanged) }),
            clients,
        }
    }
}
