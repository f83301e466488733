//! Tests: whatever happens on a delivery thread, in whichever order, everything comes to rest: what is owed is sent, and
//! every sweep ends. With limits down to 1, a store that cannot be read for a while, and clients that do not answer.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use flare_model::feed::{Action, SweepKind};
use flare_model::ids::SubscriptionNumber;
use flare_model::time::Timestamp;
use flare_provider::Start;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::door::Chance;
use crate::journey::subscriber::Standstill;
use crate::journey::testing::world::{Small, World, taken, timed_out};
use crate::journey::thread::command::Command;
use crate::journey::worker::job::Job;
use crate::notification::ending::Ending;

const STEPS: u64 = 120;

/// How many ways are gone.
fn seeds() -> u64 {
    if std::env::var_os("FLARE_CHECK_DEEP").is_some() { 1500 } else { 40 }
}

/// A subscription, and what is open of it.
struct Scene {
    world: Rc<World>,
    chance: Chance,
    number: SubscriptionNumber,
    settings: Value,
    filter_changes: u64,
    open: Vec<Job>,
}

impl Scene {
    async fn begin(world: Rc<World>, seed: u64) -> Scene {
        for document in 0..8 {
            world.say(document, Some(1)).await;
        }
        let mut settings = json!({"delivery": {
            "concurrency": 1 + seed % 3,
            "revision": if seed % 4 == 1 { "all" } else { "last" },
            "retry": {"quantity": 1 + seed % 2, "interval": "1ms"},
        }});
        if seed % 4 == 3 {
            settings["content"] = json!({"patch": "merge"});
        }
        let start = if seed.is_multiple_of(2) { Start::Beginning } else { Start::Now };
        let number = world.subscribe(settings.clone(), start).await;
        Scene {
            world,
            chance: Chance::from_seed(seed),
            number,
            settings,
            filter_changes: 0,
            open: Vec::new(),
        }
    }

    fn pick(&self, among: u64) -> u64 {
        self.chance.bits() % among
    }

    fn some_ending(&self) -> Ending {
        if self.pick(2) == 0 { taken() } else { timed_out() }
    }

    fn stand(&self, standstill: Standstill) {
        self.world.obey(Command::Stand { number: self.number, standstill, paused_since: None });
    }

    /// One thing.
    async fn something_happens(&mut self) {
        let (world, number) = (self.world.clone(), self.number);
        match self.pick(17) {
            0 | 1 => world.say(self.pick(8), Some(self.pick(1 << 40) as i64)).await,
            2 => world.say(self.pick(8), None).await,
            3 => self.sweep(self.pick(1 << 40)),
            4 => self.stand(Standstill::Paused),
            5 => self.stand(Standstill::None),
            6 => world.hold_reads(),
            7 => world.plan.heal(),
            8 => tokio::time::sleep(Duration::from_millis(self.pick(15))).await,
            9 => self.change().await,
            10 => self.leave_and_come_back().await,
            11 => {
                let (reply, _) = oneshot::channel();
                world.obey(Command::BeginAgain(number, reply));
            }
            12..=14 => self.open.extend(world.take()),
            _ if self.open.is_empty() => {}
            _ => {
                let job = self.open.swap_remove(self.pick(self.open.len() as u64) as usize);
                world.settle(job, &self.some_ending());
            }
        }
        tokio::task::yield_now().await;
    }

    fn sweep(&self, replay: u64) {
        let kind = SweepKind::Replay { since: Timestamp::from_millis(i64::MIN) };
        let (reply, _) = oneshot::channel();
        self.world.obey(Command::Sweep(self.number, kind, replay, reply));
    }

    /// Another filter, or other revisions.
    async fn change(&mut self) {
        if self.pick(2) == 0 {
            self.settings["filter"] = json!(format!("document.rev % 3 != {}", self.pick(4)));
            self.filter_changes += 1;
        } else {
            let all = self.settings["delivery"]["revision"] == "all";
            self.settings["delivery"]["revision"] = json!(if all { "last" } else { "all" });
        }
        let compiled = self.world.compiled(self.number, self.settings.clone(), self.filter_changes);
        self.world.obey(Command::Replace(compiled));
    }

    /// A lane goes to another thread, and comes back from there.
    async fn leave_and_come_back(&mut self) {
        let lane = self.pick(u64::from(self.world.resource.view.lanes)) as u8;
        if self.open.iter().any(|job| job.lane == lane) {
            return;
        }
        let (drained, is_drained) = oneshot::channel();
        self.world.obey(Command::Drain(self.number, vec![(lane, drained)]));
        is_drained.await.expect("nothing of it is in flight");
        self.world.ask(|reply| Command::Release(self.number, vec![lane], reply)).await;
        let compiled = self.world.compiled(self.number, self.settings.clone(), self.filter_changes);
        self.world.open(compiled, &[lane]).await;
    }

    /// Once nothing is in the way any more, everything that is owed is sent, and every sweep ends. Answers what each
    /// document's client was told last.
    async fn comes_to_rest(&mut self, ending: impl Fn(&Scene) -> Ending) -> BTreeMap<String, Action> {
        self.world.plan.heal();
        self.stand(Standstill::None);
        let mut told = BTreeMap::new();
        for _ in 0..5_000 {
            while let Some(job) = self.open.pop().or_else(|| self.world.take()) {
                told.insert(
                    job.notification.change.document.url.to_string(),
                    job.notification.attempt.action,
                );
                self.world.settle(job, &ending(self));
            }
            let seen = self.world.progress(self.number).await;
            if seen.sweep.is_none() && seen.lagging.documents == 0 {
                return told;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("it stands still for ever: {:?}", self.world.progress(self.number).await);
    }
}

#[test]
fn whatever_happens_in_whichever_order_everything_comes_to_rest() {
    for seed in 0..seeds() {
        let small = Small {
            limit: [1, 2, 20][(seed % 3) as usize],
            lanes: 1 + (seed % 2) as u16,
            bytes: [1, 1 << 20][(seed % 5 / 4) as usize],
        };
        World::run(small, async |world| {
            let mut scene = Scene::begin(world, seed).await;
            for _ in 0..STEPS {
                scene.something_happens().await;
            }
            // Half of what is sent gets no answer, and that may be all that was left to be sent.
            scene.comes_to_rest(Scene::some_ending).await;
            scene.sweep(1 << 50);
            let told = scene.comes_to_rest(|_| taken()).await;
            let held = scene.world.progress(scene.number).await.held;
            let live = told.values().filter(|action| **action != Action::Delete).count() as u64;
            assert_eq!(held, live, "seed {seed}: {told:?}");
        });
    }
}
