//! What happens to nodes beside what is asked of them: an incident of the schedule comes in, and befalls one of the nodes, the
//! store, the coordinator, or a way between them. Of several nodes the others go on meanwhile.

use std::time::Duration;

use flare_promises::dice::Dice;

use crate::cue::Moment;
use crate::schedule::Play;
use crate::together::Together;
use crate::together::ways::{Direction, End};
use crate::weather::Weather;

/// What happens.
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
    /// Of several nodes, one stands still, for longer than its lease mostly.
    Suspend,
    /// The same at that very moment.
    SuspendAt(Moment),
    /// Nothing passes between one of several nodes and something else, in one direction or both.
    Cut,
    /// The coordinator answers nobody for a while.
    CoordinatorDown,
    /// And is then another one, which knows nothing.
    CoordinatorRestored,
    /// The store answers nobody for a while.
    StoreRestarts,
    /// One of several nodes is to hand its units over, and to take some again.
    Drain,
    /// One of several nodes stands still while it renews its lease, and another process is started under its name; then it goes
    /// on, until somebody ends both.
    Replace,
}

/// So long a crash waits for its moment.
const PATIENCE: Duration = Duration::from_millis(400);

impl Play {
    pub async fn happen(&mut self) {
        let house = self.house.clone();
        let incident = self.dice.weighted(self.profile.incidents);
        if !matches!(incident, Incident::None) {
            house.stage.note(|| format!("{incident:?}"));
        }
        let node = match house.nodes() {
            1 => 0,
            several => self.dice.below(several as u64) as usize,
        };
        match incident {
            Incident::None => {}
            Incident::CrashAt(moment) if house.is_up() => {
                let node = self.come_to(moment, node).await;
                self.crash(node).await;
            }
            Incident::Crash if house.is_up() => self.crash(node).await,
            Incident::Stop if house.places[node].is_up() => self.stop(node).await,
            Incident::Pause => {
                house.pause(node, true);
                tokio::time::sleep(Duration::from_millis(self.dice.below(4_000))).await;
                house.pause(node, false);
            }
            Incident::Weather(weather) => house.sky.set(weather),
            Incident::Clock(offset) => {
                house.stage.lock().clock_is_set();
                house.places[node].machine.set_offset(offset);
            }
            Incident::Replace if house.places[node].is_up() => self.replace(node).await,
            Incident::SuspendAt(moment) => {
                let node = self.come_to(moment, node).await;
                self.befall(Incident::Suspend, node);
            }
            other => self.befall(other, node),
        }
    }

    /// Waits until that happens next, or for the second or third time. Answers the node to which it happened, or this one.
    async fn come_to(&mut self, moment: Moment, node: usize) -> usize {
        let house = self.house.clone();
        let comes = house.stage.lock().cue.wait(moment, self.dice.below(3));
        let quantity = self.dice.below(3);
        self.say(quantity);
        match tokio::time::timeout(PATIENCE, comes.notified()).await {
            Ok(()) => house.stage.lock().cue.by,
            Err(_) => node,
        }
    }

    /// What origins say while no node is there is the first thing that the next one hears.
    async fn crash(&mut self, node: usize) {
        if self.house.places[node].is_up() {
            self.house.crash(node);
            let quantity = self.dice.below(3);
            self.say(quantity);
            self.pass().await;
            match &self.house.together {
                None => self.start_again(node, Duration::ZERO),
                // Somebody starts it, before or after others have missed it.
                Some(together) => {
                    let later = some_leases(together, &mut self.dice, 3);
                    self.start_again(node, later);
                }
            }
        }
    }

    async fn stop(&mut self, node: usize) {
        let house = self.house.clone();
        // A store that does not answer keeps a node from stopping; whoever waits loses patience.
        let stop = async move {
            let stopping = tokio::time::timeout(Duration::from_secs(10), house.stop(node));
            if stopping.await.is_err() {
                house.crash(node);
            }
        };
        if self.house.together.is_none() {
            stop.await;
            return self.start_again(node, Duration::ZERO);
        }
        let house = self.house.clone();
        self.befalling.spawn_local(async move {
            stop.await;
            house.start_at(node).await;
        });
    }

    /// Nobody waits for it: while the store is full, no node starts.
    fn start_again(&mut self, node: usize, later: Duration) {
        let house = self.house.clone();
        self.befalling.spawn_local(async move {
            tokio::time::sleep(later).await;
            house.start_at(node).await;
        });
    }

    /// The renewal arrives when the lease may be over, and the node goes on when it would count if that was not so.
    async fn replace(&mut self, node: usize) {
        let house = self.house.clone();
        let spare = house.nodes();
        let Some(together) = &house.together else { return };
        if house.replacing.get() {
            return;
        }
        let (lease, place) = (together.settings.lease, &house.places[node]);
        let late = lease.mul_f64(self.dice.between(50, 90) as f64 / 100.0);
        let renews = together.coordinator.holds_up(place.name().to_string(), late);
        if tokio::time::timeout(lease, renews.notified()).await.is_err() || !place.is_up() {
            return;
        }
        house.replacing.set(true);
        let life = place.life();
        let stands = late.max(lease.mul_f64(self.dice.between(65, 85) as f64 / 100.0));
        house.pause(node, true);
        house.places[spare].is_called(node);
        place.namesake.set(true);
        house.places[spare].namesake.set(true);
        self.start_again(spare, Duration::ZERO);
        let goes_on = some_leases(together, &mut self.dice, 2);
        let house = house.clone();
        self.befalling.spawn_local(async move {
            tokio::time::sleep(stands).await;
            if house.places[node].life() == life {
                house.pause(node, false);
            }
            tokio::time::sleep(goes_on).await;
            if house.places[node].life() == life {
                house.crash(node);
            }
            house.retire(spare).await;
            house.places[node].namesake.set(false);
            house.replacing.set(false);
            house.start_at(node).await;
        });
    }

    /// Something happens to one of several nodes, or to what they share, and ends by itself.
    fn befall(&mut self, incident: Incident, node: usize) {
        let house = self.house.clone();
        let Some(together) = &house.together else { return };
        let lasts = some_leases(together, &mut self.dice, 3);
        match incident {
            Incident::Suspend if house.places[node].is_up() => self.suspend(node, lasts),
            Incident::Cut => {
                let end = *self.dice.pick(&[End::Store, End::Coordinator, End::Coordinator, End::Nodes]);
                let both = [Direction::Out, Direction::Back];
                let directions: &[Direction] = match self.dice.below(4) {
                    0 => &both[..1],
                    1 => &both[1..],
                    _ => &both,
                };
                self.cut(node, end, directions.to_vec(), lasts);
            }
            Incident::CoordinatorDown | Incident::CoordinatorRestored => {
                let restored = matches!(incident, Incident::CoordinatorRestored);
                // Whoever sets up another one sees to it that nobody goes by the last any more.
                let lasts = if restored { together.settings.lease * 2 } else { lasts };
                let (coordinator, stage) = (together.coordinator.clone(), house.stage.clone());
                coordinator.goes_down(true);
                self.befalling.spawn_local(async move {
                    tokio::time::sleep(lasts).await;
                    if restored && !stage.lock().healed {
                        coordinator.is_restored();
                    }
                    coordinator.goes_down(false);
                });
            }
            Incident::StoreRestarts => {
                house.sky.set(Weather::Down);
                let sky = house.sky.clone();
                self.befalling.spawn_local(async move {
                    tokio::time::sleep(lasts).await;
                    sky.set(Weather::Fair);
                });
            }
            Incident::Drain => {
                if let Some(app) = house.places[node].app() {
                    self.befalling.spawn_local(drain(app, lasts));
                }
            }
            _ => {}
        }
    }
}

impl Play {
    fn suspend(&mut self, node: usize, lasts: Duration) {
        let (house, life) = (self.house.clone(), self.house.places[node].life());
        house.pause(node, true);
        self.befalling.spawn_local(async move {
            tokio::time::sleep(lasts).await;
            if house.places[node].life() == life {
                house.pause(node, false);
            }
        });
    }

    fn cut(&mut self, node: usize, end: End, directions: Vec<Direction>, lasts: Duration) {
        let ways = self.house.places[node].ways.clone();
        self.house.stage.note(|| format!("node {node} is cut off: {end:?} {directions:?} for {lasts:?}"));
        directions.iter().for_each(|direction| ways.cut(end, *direction, true));
        self.befalling.spawn_local(async move {
            tokio::time::sleep(lasts).await;
            directions.iter().for_each(|direction| ways.cut(end, *direction, false));
        });
    }
}

/// Up to so many leases.
fn some_leases(together: &Together, dice: &mut Dice, most: u64) -> Duration {
    let lease = together.settings.lease.as_millis() as u64;
    Duration::from_millis(dice.below(lease * most))
}

async fn drain(app: std::sync::Arc<flare_core::operations::App>, lasts: Duration) {
    for drains in [true, false] {
        if let Some(member) = &app.member {
            member.drain(drains);
        }
        tokio::time::sleep(lasts).await;
    }
}
