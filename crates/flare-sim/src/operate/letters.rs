//! Dead letters: operators look at them, and drop some, or all.

use std::rc::Rc;

use flare_core::operations::Failure;
use flare_promises::dice::Dice;
use flare_promises::world::Tick;

use super::{Operation, insist};
use crate::house::House;
use crate::stage::Inside;

/// What is done with dead letters.
#[derive(Clone, Debug)]
pub enum Errand {
    Look,
    Drop(Option<String>),
}

pub fn draw(inside: &Inside, number: usize, dice: &mut Dice) -> Operation {
    let urls: Vec<&String> =
        inside.world.resources[inside.clients[number].resource].documents.keys().collect();
    let errand = match dice.below(10) {
        0..=6 => Errand::Look,
        7 => Errand::Drop(None),
        _ if urls.is_empty() => Errand::Look,
        _ => Errand::Drop(Some((*dice.pick(&urls)).clone())),
    };
    Operation::Letters { number, errand }
}

pub async fn run(house: Rc<House>, number: usize, errand: Errand) {
    let name = house.stage.lock().clients[number].name.clone();
    let place = will_drop(&mut house.stage.lock(), number, &errand);
    if let Some(name) = name {
        let (done, _) = insist(&house, Some(&name), |app, _| {
            let (name, errand) = (name.clone(), errand.clone());
            async move {
                match errand {
                    Errand::Look => app.dead_letters(&name.resource, &name.id, 0, 100).await.map(drop),
                    Errand::Drop(document) => {
                        app.drop_dead_letters(&name.resource, &name.id, document.as_deref()).await.map(drop)
                    }
                }
            }
        })
        .await;
        let mut inside = house.stage.lock();
        inside.note(|| format!("client {number}: {errand:?} {}", done.is_ok()));
        match done {
            Ok(()) => {}
            // There is no dead letter of this document.
            Err(Failure::NotFound(_)) if matches!(errand, Errand::Drop(Some(_))) => {}
            Err(failure) => inside.fails(number, "dead letters", &failure),
        }
    }
    if let Some(place) = place {
        let mut inside = house.stage.lock();
        let now = inside.world.now();
        inside.clients[number].dropped[place].1 = now;
    }
}

/// From now on they may be dropped: also when nobody waits for it any more.
fn will_drop(inside: &mut Inside, number: usize, errand: &Errand) -> Option<usize> {
    let Errand::Drop(document) = errand else { return None };
    let dropped = &mut inside.clients[number].dropped;
    dropped.push((document.clone(), Tick::MAX));
    Some(dropped.len() - 1)
}
