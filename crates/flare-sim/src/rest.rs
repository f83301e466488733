//! The end of a schedule: nothing goes wrong any more, everything that stands still goes on, what was given up is replayed;
//! then everything has to come to rest within a bounded time.

use std::rc::Rc;
use std::time::Duration;

use flare_core::operations::StatusView;
use flare_model::subscription::Status;
use flare_promises::mood::Mood;
use serde_json::json;
use tokio::task::JoinSet;

use crate::client::Name;
use crate::house::House;
use crate::operate::{self, insist};
use crate::weather::Weather;

/// A client that failed is asked again after gaps that grow with the time for which it failed, and a host that did not
/// answer is left alone for a while: a minute or so in all.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often it is looked.
const LOOK: Duration = Duration::from_secs(2);

/// Nothing goes wrong any more.
pub async fn heal(house: &Rc<House>) {
    house.sky.set(Weather::Fair);
    if let Some(together) = &house.together {
        together.heal();
        house.places.iter().for_each(|place| place.ways.heal());
    }
    for node in 0..house.places.len() {
        house.goes_on(node);
    }
    let mut inside = house.stage.lock();
    inside.note(|| "everything heals".into());
    inside.healed = true;
    inside.clients.iter_mut().for_each(|client| client.mood = Mood::Healthy);
}

/// Whatever is being done comes to its end.
pub async fn finish(house: &Rc<House>, mut performing: JoinSet<()>) {
    let all = async { while performing.join_next().await.is_some() {} };
    if tokio::time::timeout(PATIENCE, all).await.is_err() {
        let performing = house.stage.lock().performing.join(", ");
        house.stage.wrong(format!("operations do not come to their end: {performing}"));
    }
}

/// Subscriptions that are there.
pub fn there(house: &House) -> Vec<(usize, Name)> {
    let inside = house.stage.lock();
    let all = inside.clients.iter().enumerate();
    all.filter_map(|(number, client)| Some((number, client.name.clone()?))).collect()
}

/// Whoever is paused, disabled or passive goes on.
pub async fn set_going(house: &Rc<House>) {
    for (number, name) in there(house) {
        let passive = std::mem::replace(&mut house.stage.lock().clients[number].wish.passive, false);
        if passive {
            let turned = operate::subscriptions::persist(house, &name, |app| {
                operate::subscriptions::try_to_change(app, name.clone(), json!({"mode": "active"}))
            })
            .await;
            if let Err(failure) = turned {
                house.stage.lock().fails(number, "turning active", &failure);
            }
        }
        operate::subscriptions::resume(house.clone(), number).await;
    }
}

/// Waits until nothing is owed to anybody. What still is when the time is over is wrong. Whether all came to rest.
pub async fn come(house: &Rc<House>, when: &str) -> bool {
    let deadline = house.stage.time.passed() + PATIENCE;
    for (number, name) in there(house) {
        loop {
            let Some(status) = status(house, number, &name).await else { return false };
            let feed = &status.feed;
            let quiet = feed.lagging == 0 && feed.waiting == 0 && feed.in_flight == 0;
            // Also what nobody needs is read: a crash on the way through it would leave doubt.
            let at_rest = quiet && feed.sweep.is_none() && feed.cursor == feed.head;
            // A client that failed last and is owed nothing has nothing to succeed with.
            let failed = status.last_failure.as_ref().map(|failure| failure.at);
            let fails = status.status == Status::Failing && failed > status.last_success_at;
            if at_rest && feed.dead_letters == 0 && (status.status == Status::Active || fails) {
                break;
            }
            if house.stage.time.passed() > deadline {
                let shown = serde_json::to_string(&status).unwrap_or_default();
                let what = format!("{when} it does not come to rest: {shown}");
                house.stage.lock().wrong(Some(number), "", what);
                return false;
            }
            if status.status == Status::Disabled {
                operate::subscriptions::resume(house.clone(), number).await;
            }
            if at_rest && feed.dead_letters > 0 {
                operate::subscriptions::replay(house.clone(), number, "deadLetters", None).await;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
    house.stage.note(|| format!("{when} all is at rest"));
    true
}

async fn status(house: &House, number: usize, name: &Name) -> Option<StatusView> {
    let (status, _) = insist(house, Some(name), |app, _| {
        let name = name.clone();
        async move { app.status(&name.resource, &name.id).await }
    })
    .await;
    status.map_err(|failure| house.stage.lock().fails(number, "its status", &failure)).ok()
}
