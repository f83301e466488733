//! One schedule, from the first start of the node to the last check: operations side by side, and what happens to the node,
//! its store and its clock meanwhile. Everything is drawn from the seed when its turn comes.

use std::rc::Rc;
use std::time::Duration;

use flare_promises::dice::Dice;
use tokio::task::JoinSet;

use crate::node::House;
use crate::operate::{self, Operation};
use crate::weather::Weather;
use crate::{rest, truth, verify};

/// What happens to the node beside what is asked of it.
#[derive(Clone, Copy, Debug)]
enum Incident {
    None,
    Crash,
    Stop,
    Pause,
    Weather(Weather),
    Clock(i64),
}

/// Plays a schedule.
pub async fn play(house: Rc<House>, mut dice: Dice, lanes: u64, mut probes: Option<Dice>) {
    house.start().await;
    operate::create_resource(&house, lanes).await;
    let mut performing = JoinSet::new();
    for _ in 0..dice.between(1, 3) {
        let drawn = operate::subscriptions::draw_new(&mut house.stage.lock(), &mut dice);
        begin(&house, &mut performing, drawn);
    }
    for _ in 0..dice.between(10, 70) {
        for _ in 0..dice.between(1, 4) {
            let drawn = Operation::draw(&mut house.stage.lock(), &mut dice);
            begin(&house, &mut performing, drawn);
        }
        pass(&mut dice).await;
        happen(&house, &mut dice).await;
        if let Some(dice) = &mut probes {
            // Where the store is in trouble, an answer may take until that is over.
            let _ = tokio::time::timeout(Duration::from_secs(2), truth::probe(&house, dice)).await;
        }
        while performing.try_join_next().is_some() {}
    }
    rest::heal(&house).await;
    rest::finish(&house, performing).await;
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

fn begin(house: &Rc<House>, performing: &mut JoinSet<()>, operation: Option<Operation>) {
    if let Some(operation) = operation {
        performing.spawn_local(operation.perform(house.clone()));
    }
}

/// Mostly a few milliseconds, sometimes nothing, sometimes long.
async fn pass(dice: &mut Dice) {
    let most = *dice.pick(&[0, 3, 10, 10, 50, 50, 300, 1_500]);
    tokio::time::sleep(Duration::from_millis(dice.below(most + 1))).await;
}

async fn happen(house: &Rc<House>, dice: &mut Dice) {
    let incident = dice.weighted(&[
        (Incident::None, 80),
        (Incident::Crash, 11),
        (Incident::Stop, 3),
        (Incident::Pause, 3),
        (Incident::Weather(Weather::Fair), 4),
        (Incident::Weather(Weather::Slow), 2),
        (Incident::Weather(Weather::Failing), 3),
        (Incident::Weather(Weather::Full), 1),
        (Incident::Clock(3_600_000), 1),
        (Incident::Clock(-7_200_000), 1),
    ]);
    if !matches!(incident, Incident::None) {
        house.stage.note(|| format!("{incident:?}"));
    }
    match incident {
        Incident::None => {}
        Incident::Crash if house.is_up() => {
            house.crash();
            pass(dice).await;
            start_again(house);
        }
        Incident::Stop if house.is_up() => {
            // A store that does not answer keeps a node from stopping; whoever waits loses patience.
            let stopping = tokio::time::timeout(Duration::from_secs(10), house.stop());
            if stopping.await.is_err() {
                house.crash();
            }
            start_again(house);
        }
        Incident::Pause => {
            house.pause(true);
            tokio::time::sleep(Duration::from_millis(dice.below(4_000))).await;
            house.pause(false);
        }
        Incident::Weather(weather) => house.sky.set(weather),
        Incident::Clock(offset) => {
            house.stage.lock().clock_was_set();
            house.stage.time.set_offset(offset);
        }
        Incident::Crash | Incident::Stop => {}
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
