//! What is done with Flare: operations are drawn from the seed as the schedule comes to them, and performed side by side.

pub mod documents;
pub mod letters;
pub mod passive;
pub mod resources;
pub mod streams;
pub mod subscriptions;

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flare_core::operations::{App, Done, Failure};
use flare_promises::dice::Dice;
use flare_promises::mood::Mood;
use flare_promises::wish::{Aspect, Wish};

use crate::client::Name;
use crate::house::House;
use crate::profile::Profile;
use crate::stage::Inside;

/// Whoever got no answer asks again after this time.
pub const AGAIN: Duration = Duration::from_millis(50);

/// Something to be done.
#[derive(Debug)]
pub enum Operation {
    Say(documents::Line),
    Open(usize),
    Close(usize),
    Subscribe(usize),
    Unsubscribe(usize),
    Change { number: usize, aspects: Vec<Aspect>, wish: Box<Wish> },
    Pause(usize),
    Resume(usize),
    Replay { number: usize, scope: &'static str, document: Option<String> },
    Mood(usize, Mood),
    Pull { number: usize, quantity: u64, lease: Duration, dice: Box<Dice> },
    Listen { number: usize, quantity: u64, lease: Duration, dice: Box<Dice> },
    Drive(usize),
    EndLeases(usize),
    Letters { number: usize, errand: letters::Errand },
}

/// What kind of operation it is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Say,
    Open,
    Close,
    Subscribe,
    Unsubscribe,
    Change,
    Stand,
    Replay,
    Mood,
    Pull,
    Drive,
    EndLeases,
    Letters,
}

impl Operation {
    /// One that makes sense now, perhaps.
    pub fn draw(inside: &mut Inside, profile: &Profile, dice: &mut Dice) -> Option<Operation> {
        let kind = dice.weighted(profile.operations);
        match kind {
            Kind::Say => return documents::draw(inside, profile, dice),
            Kind::Open => return resources::draw_new(inside, profile, dice),
            Kind::Close => return resources::draw_end(inside, dice),
            Kind::Subscribe => return subscriptions::draw_new(inside, profile, dice),
            _ => {}
        }
        let there = subscriptions::existing(inside);
        if there.is_empty() {
            return None;
        }
        let number = *dice.pick(&there);
        match kind {
            Kind::Unsubscribe => subscriptions::draw_end(inside, number),
            Kind::Change => subscriptions::draw_change(inside, number, profile, dice),
            Kind::Stand if inside.clients[number].standing => None,
            Kind::Stand => {
                inside.clients[number].standing = true;
                Some(if dice.percent(50) { Operation::Pause(number) } else { Operation::Resume(number) })
            }
            Kind::Replay => Some(subscriptions::draw_replay(inside, number, dice)),
            Kind::Mood => Some(Operation::Mood(number, profile.mood(dice))),
            Kind::Pull => passive::draw(inside, number, profile, dice),
            Kind::Drive => Some(Operation::Drive(number)),
            Kind::EndLeases => Some(Operation::EndLeases(number)),
            Kind::Letters => Some(letters::draw(inside, number, dice)),
            Kind::Say | Kind::Open | Kind::Close | Kind::Subscribe => None,
        }
    }

    pub async fn perform(self, house: Rc<House>) {
        let (what, stage) = (format!("{self:?}"), house.stage.clone());
        stage.note(|| what.clone());
        stage.lock().performing.push(what.clone());
        self.perform_it(house).await;
        let performing = &mut stage.lock().performing;
        performing.iter().position(|other| *other == what).map(|place| performing.remove(place));
    }

    async fn perform_it(self, house: Rc<House>) {
        match self {
            Operation::Say(line) => documents::say(house, line).await,
            Operation::Open(number) => resources::create(house, number).await,
            Operation::Close(number) => resources::delete(house, number).await,
            Operation::Subscribe(number) => subscriptions::create(house, number).await,
            Operation::Unsubscribe(number) => subscriptions::delete(house, number).await,
            Operation::Change { number, aspects, wish } => {
                subscriptions::change(house, number, aspects, *wish).await;
            }
            Operation::Pause(number) => subscriptions::pause(house, number).await,
            Operation::Resume(number) => subscriptions::resume(house, number).await,
            Operation::Replay { number, scope, document } => {
                subscriptions::replay(house, number, scope, document).await;
            }
            Operation::Mood(number, mood) => house.stage.lock().set_mood(number, mood),
            Operation::Pull { number, quantity, lease, mut dice } => {
                passive::pull(house, number, quantity, lease, &mut dice).await;
            }
            Operation::Listen { number, quantity, lease, mut dice } => {
                streams::listen(house, number, quantity, lease, &mut dice).await;
            }
            Operation::Drive(number) => passive::drive(house, number).await,
            Operation::EndLeases(number) => passive::end_leases(house, number).await,
            Operation::Letters { number, errand } => letters::run(house, number, errand).await,
        }
    }
}

/// Asks until it is answered, and not because the store has trouble; of a subscription whoever serves it. Also whether an
/// earlier try may have been heard.
pub async fn insist<T: 'static, F: Future<Output = Done<T>> + 'static>(
    house: &House,
    about: Option<&Name>,
    ask: impl Fn(Arc<App>, bool) -> F,
) -> (Done<T>, bool) {
    let mut again = false;
    loop {
        let asked = match about {
            Some(name) => house.ask_about(name, |app, _| ask(app, again)).await,
            None => house.ask(|app, _| ask(app, again)).await,
        };
        match asked {
            Some(Err(Failure::Store(error))) if error.is_passing() => {
                house.stage.note(|| format!("it is asked again: {error}"));
            }
            Some(Err(Failure::Stopping)) | None => {}
            Some(answer) => return (answer, again),
        }
        again = true;
        tokio::time::sleep(AGAIN).await;
    }
}
