//! Streams: a client that stays connected for a while, takes what comes, and says what became of it: lease by lease, or all
//! at once when it comes back.

use std::rc::Rc;
use std::time::Duration;

use flare_core::operations::{Failure, StreamQuery};
use flare_model::duration::HumanDuration;
use flare_promises::beliefs::Ending;
use flare_promises::dice::Dice;

use super::passive::{self, Message};
use crate::client::Name;
use crate::house::House;

/// What a client asks for when it connects.
struct Connecting {
    quantity: u64,
    lease: Duration,
    /// The last event that it has.
    last: Option<String>,
    /// It stays for so long, or until it has so many.
    stay: Duration,
    enough: usize,
}

/// Stays connected for a while.
pub async fn listen(house: Rc<House>, number: usize, quantity: u64, lease: Duration, dice: &mut Dice) {
    let name = house.stage.lock().clients[number].name.clone();
    if let Some(name) = name {
        let mut connecting = Connecting {
            quantity,
            lease,
            last: None,
            stay: Duration::from_millis(dice.below(400)),
            enough: dice.between(1, 6) as usize,
        };
        let messages = take(&house, number, &name, &connecting).await;
        if dice.percent(40) {
            // All that came it has, and it says so by coming back.
            connecting.last = has(&house, number, &messages);
            connecting.stay = Duration::from_millis(dice.below(100));
            let more = take(&house, number, &name, &connecting).await;
            acknowledged(&house, number, &messages);
            passive::use_up(&house, number, name, more, dice).await;
        } else {
            passive::use_up(&house, number, name, messages, dice).await;
        }
    }
    house.stage.lock().clients[number].pulling -= 1;
}

async fn take(house: &Rc<House>, number: usize, name: &Name, connecting: &Connecting) -> Vec<Message> {
    let Connecting { quantity, lease, last, stay, enough } = connecting;
    let (stay, enough, name) = (*stay, *enough, name.clone());
    let query = StreamQuery {
        quantity: Some(*quantity),
        lease: Some(HumanDuration(*lease)),
        last_event_id: last.clone(),
    };
    // Whatever comes is taken after this, and so it ends after this and its time.
    let until = house.stage.time.passed() + *lease;
    let (stage, about) = (house.stage.clone(), name.clone());
    let asked = house.ask_about(&about, async move |app, sender| {
        let mut open = app.stream(&name.resource, &name.id, query).await?;
        let mut begun = Vec::new();
        let all = async {
            while let Some(event) = open.events.recv().await {
                let json = serde_json::to_value(&event).expect("an event is plain data");
                begun.extend(passive::begin(&mut stage.lock(), number, &[json], until, sender));
                if begun.len() >= enough {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(stay, all).await;
        Ok::<_, Failure>(begun)
    });
    let answer = asked.await;
    let mut inside = house.stage.lock();
    // What was on its way when the connection ended is out, and nobody knows what it is.
    let now = inside.world.now();
    inside.clients[number].blur(now);
    match answer {
        Some(Ok(messages)) => messages,
        // It may be active by now, paused, or gone; or others wait already.
        Some(Err(Failure::Invalid(_) | Failure::Conflict(_) | Failure::TooMany(_) | Failure::Stopping))
        | None => Vec::new(),
        Some(Err(failure)) if house.is_elsewhere(&failure) => Vec::new(),
        Some(Err(failure)) => {
            inside.fails(number, "streaming", &failure);
            Vec::new()
        }
    }
}

/// The client processes everything. Answers the last of it.
fn has(house: &House, number: usize, messages: &[Message]) -> Option<String> {
    let mut inside = house.stage.lock();
    for message in messages {
        inside.processes(number, &message.told);
        inside.has_all_of(number, &message.told);
    }
    messages.last().map(|message| message.told.id.clone())
}

/// Whether Flare knew the last one, and the leases were still out, the client is not told of each.
fn acknowledged(house: &House, number: usize, messages: &[Message]) {
    let mut inside = house.stage.lock();
    for message in messages {
        inside.ends_perhaps(number, message.request, &message.told, Ending::Delivered);
        inside.came_back(number, &message.told);
    }
}
