//! One schedule, from the first start of the node to the last check: operations side by side, and what happens to the node,
//! its store and its clock meanwhile. Everything is drawn from the seed when its turn comes, as often as the schedule's
//! profile says.

use std::rc::Rc;
use std::time::Duration;

use flare_promises::dice::Dice;
use tokio::task::JoinSet;

use crate::house::House;
use crate::operate::{self, Operation};
use crate::profile::Profile;
use crate::{balance, rest, truth, verify};

/// A schedule that is being played.
pub struct Play {
    pub house: Rc<House>,
    pub profile: Profile,
    pub dice: Dice,
    /// Operations that are under way. Bound: those of a schedule.
    performing: JoinSet<()>,
    /// Incidents that are not over. Bound: those of a schedule.
    pub befalling: JoinSet<()>,
}

/// Plays a schedule.
pub async fn play(house: Rc<House>, mut dice: Dice, mut probes: Option<Dice>) {
    house.start().await;
    let profile = match house.together {
        Some(_) => Profile::draw_for_several(&mut dice),
        None => Profile::draw(&mut dice),
    };
    house.stage.note(|| format!("of {}: {profile:?}", profile.name));
    let first = operate::resources::draw_new(&mut house.stage.lock(), &profile, &mut dice);
    first.expect("there is none yet").perform(house.clone()).await;
    let mut play =
        Play { house: house.clone(), profile, dice, performing: JoinSet::new(), befalling: JoinSet::new() };
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
    rest::finish(&house, play.befalling).await;
    rest::finish(&house, play.performing).await;
    rest::set_going(&house).await;
    if rest::come(&house, "at the end").await {
        verify::clients(&house).await;
        balance::check(&house).await;
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
    pub fn say(&mut self, quantity: u64) {
        for _ in 0..quantity {
            let drawn = operate::documents::draw(&mut self.house.stage.lock(), &self.profile, &mut self.dice);
            self.begin(drawn);
        }
    }

    pub async fn pass(&mut self) {
        tokio::time::sleep(self.profile.pause(&mut self.dice)).await;
    }
}

/// Stopped, and then crashed, when all is at rest and recorded: nobody is told anything, and nothing has changed.
async fn again_and_nothing_happens(house: &Rc<House>) {
    for clean in [true, false] {
        let before = house.stage.lock().requests;
        for node in 0..house.nodes() {
            match clean {
                true => house.stop(node).await,
                false => house.crash(node),
            }
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
