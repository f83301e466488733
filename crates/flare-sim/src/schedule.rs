//! One schedule, from the first start of the node to the last check: operations side by side, and what happens to the node,
//! its store and its clock meanwhile. Everything is drawn from the seed when its turn comes, as often as the schedule's
//! profile says.

use std::rc::Rc;
use std::time::Duration;

use flare_promises::dice::Dice;
use tokio::task::JoinSet;

use crate::cue::Moment;
use crate::node::House;
use crate::operate::{self, Operation};
use crate::profile::Profile;
use crate::weather::Weather;
use crate::{rest, truth, verify};

/// What happens to the node beside what is asked of it.
#[derive(Clone, Copy, Debug)]
pub enum Incident {
    None,
    Crash,
    /// When that happens next, or for the second or third time.
    CrashAt(Moment),
    Stop,
    Pause,
    Weather(Weather),
    Clock(i64),
}

/// So long a crash waits for its moment.
const PATIENCE: Duration = Duration::from_millis(400);

/// A schedule that is being played.
struct Play {
    house: Rc<House>,
    profile: Profile,
    dice: Dice,
    /// Operations that are under way. Bound: those of a schedule.
    performing: JoinSet<()>,
}

/// Plays a schedule.
pub async fn play(house: Rc<House>, mut dice: Dice, mut probes: Option<Dice>) {
    house.start().await;
    let profile = Profile::draw(&mut dice);
    house.stage.note(|| format!("of {}: {profile:?}", profile.name));
    let first = operate::resources::draw_new(&mut house.stage.lock(), &profile, &mut dice);
    first.expect("there is none yet").perform(house.clone()).await;
    let mut play = Play { house: house.clone(), profile, dice, performing: JoinSet::new() };
    for _ in 0..play.dice.between(1, 3) {
        let Play { dice, profile, .. } = &mut play;
        let drawn = operate::subscriptions::draw_new(&mut house.stage.lock(), profile, dice);
        play.begin(drawn);
    }
    let (least, most) = play.profile.rounds;
    for _ in 0..play.dice.between(least, most) {
        for _ in 0..play.dice.between(1, 4) {
            let Play { dice, profile, .. } = &mut play;
            let drawn = Operation::draw(&mut house.stage.lock(), profile, dice);
            play.begin(drawn);
        }
        play.pass().await;
        play.happen().await;
        if let Some(dice) = &mut probes {
            // Where the store is in trouble, an answer may take until that is over.
            let _ = tokio::time::timeout(Duration::from_secs(2), truth::probe(&house, dice)).await;
        }
        while play.performing.try_join_next().is_some() {}
    }
    rest::heal(&house).await;
    rest::finish(&house, play.performing).await;
    rest::set_going(&house).await;
    if rest::come(&house, "at the end").await {
        verify::clients(&house).await;
        for _ in 0..probes.as_ref().map_or(0, |_| 5) {
            if let Some(dice) = &mut probes {
                truth::probe(&house, dice).await;
            }
        }
        again_and_nothing_happens(&house).await;
    }
}

impl Play {
    fn begin(&mut self, operation: Option<Operation>) {
        if let Some(operation) = operation {
            self.performing.spawn_local(operation.perform(self.house.clone()));
        }
    }

    /// Origins say so many things.
    fn say(&mut self, quantity: u64) {
        for _ in 0..quantity {
            let drawn = operate::documents::draw(&mut self.house.stage.lock(), &self.profile, &mut self.dice);
            self.begin(drawn);
        }
    }

    async fn pass(&mut self) {
        tokio::time::sleep(self.profile.pause(&mut self.dice)).await;
    }

    async fn happen(&mut self) {
        let house = self.house.clone();
        let incident = self.dice.weighted(self.profile.incidents);
        if !matches!(incident, Incident::None) {
            house.stage.note(|| format!("{incident:?}"));
        }
        match incident {
            Incident::None => {}
            Incident::CrashAt(moment) if house.is_up() => {
                let comes = house.stage.lock().cue.wait(moment, self.dice.below(3));
                let quantity = self.dice.below(3);
                self.say(quantity);
                let _ = tokio::time::timeout(PATIENCE, comes.notified()).await;
                self.crash().await;
            }
            Incident::Crash if house.is_up() => self.crash().await,
            Incident::Stop if house.is_up() => {
                // A store that does not answer keeps a node from stopping; whoever waits loses patience.
                let stopping = tokio::time::timeout(Duration::from_secs(10), house.stop());
                if stopping.await.is_err() {
                    house.crash();
                }
                start_again(&house);
            }
            Incident::Pause => {
                house.pause(true);
                tokio::time::sleep(Duration::from_millis(self.dice.below(4_000))).await;
                house.pause(false);
            }
            Incident::Weather(weather) => house.sky.set(weather),
            Incident::Clock(offset) => {
                house.stage.lock().clock_was_set();
                house.stage.time.set_offset(offset);
            }
            Incident::Crash | Incident::CrashAt(_) | Incident::Stop => {}
        }
    }

    /// What origins say while no node is there is the first thing that the next one hears.
    async fn crash(&mut self) {
        if self.house.is_up() {
            self.house.crash();
            let quantity = self.dice.below(3);
            self.say(quantity);
            self.pass().await;
            start_again(&self.house);
        }
    }
}

/// Nobody waits for it: while the store is full, no node starts.
fn start_again(house: &Rc<House>) {
    let house = house.clone();
    tokio::task::spawn_local(async move { house.start().await });
}

/// Stopped, and then crashed, when all is at rest and recorded: nobody is told anything, and nothing has changed.
async fn again_and_nothing_happens(house: &Rc<House>) {
    for clean in [true, false] {
        let before = house.stage.lock().requests;
        if clean {
            house.stop().await;
        } else {
            house.crash();
        }
        house.start().await;
        let how = if clean { "after a clean stop at rest" } else { "after a crash at rest" };
        if !rest::come(house, how).await {
            return;
        }
        let after = house.stage.lock().requests;
        if after != before {
            house.stage.wrong(format!("{} requests {how}", after - before));
        }
        verify::clients(house).await;
    }
}
