//! Passive mode: clients that take notifications away, settle them or leave them lying, and deliveries on request.

use std::rc::Rc;
use std::time::Duration;

use flare_core::operations::{DeliverQuery, Failure, ReserveQuery, SettleDraft};
use flare_model::duration::HumanDuration;
use flare_promises::beliefs::Ending;
use flare_promises::dice::Dice;
use flare_promises::told::Told;
use serde_json::{Value, json};

use super::Operation;
use crate::client::Name;
use crate::house::House;
use crate::pair::Way;
use crate::profile::Profile;
use crate::stage::Inside;
use crate::together::tenures::Sender;

/// A message that a client has on a lease.
pub struct Message {
    pub told: Told,
    token: String,
    pub request: u64,
}

pub fn draw(inside: &mut Inside, number: usize, profile: &Profile, dice: &mut Dice) -> Option<Operation> {
    let client = &mut inside.clients[number];
    // Several at once: the word of one about a lease that is over may meet the lease of the other.
    if !client.wish.passive || client.pulling >= profile.pulling {
        return None;
    }
    client.pulling += 1;
    let lease = Duration::from_millis(*dice.pick(profile.leases));
    let (quantity, listens, dice) = (dice.between(1, 8), dice.percent(25), Box::new(dice.clone()));
    Some(match listens {
        true => Operation::Listen { number, quantity, lease, dice },
        false => Operation::Pull { number, quantity, lease, dice },
    })
}

/// Takes some and uses them up.
pub async fn pull(house: Rc<House>, number: usize, quantity: u64, lease: Duration, dice: &mut Dice) {
    let name = house.stage.lock().clients[number].name.clone();
    if let Some(name) = name {
        let messages = reserve(&house, number, name.clone(), quantity, lease, dice).await;
        use_up(&house, number, name, messages, dice).await;
    }
    house.stage.lock().clients[number].pulling -= 1;
}

async fn reserve(
    house: &Rc<House>,
    number: usize,
    name: Name,
    quantity: u64,
    lease: Duration,
    dice: &mut Dice,
) -> Vec<Message> {
    let wait = Duration::from_millis(dice.below(300));
    let query = ReserveQuery {
        quantity: Some(quantity),
        wait: Some(HumanDuration(wait)),
        lease: Some(HumanDuration(lease)),
    };
    // They begin after this, and so they end after this and their time.
    let until = house.stage.time.passed() + lease;
    let stage = house.stage.clone();
    // What is handed out begins at this moment, among the node's own tasks: whatever it does next comes after.
    let about = name.clone();
    let asked = house.ask_about(&about, async move |app, sender| {
        let mut view = app.reserve(&name.resource, &name.id, query).await?;
        let receipt = view.receipt.take();
        let json = serde_json::to_value(&view).expect("an answer is plain data");
        let messages = json["messages"].as_array().cloned().unwrap_or_default();
        let begun = begin(&mut stage.lock(), number, &messages, until, sender);
        if let Some(receipt) = receipt {
            receipt.handed_over();
        }
        Ok(begun)
    });
    match asked.await {
        Some(Ok(messages)) => {
            if messages.is_empty() {
                // Its time may have been over before what it took was durable: then that ends like any lease of which
                // nothing is heard, and Flare takes the client for one that may have had it.
                let mut inside = house.stage.lock();
                let now = inside.world.now();
                inside.clients[number].blur(now);
            }
            messages
        }
        Some(Err(failure)) => {
            // It may be active by now, paused, or gone; or others wait already.
            let usual = matches!(
                failure,
                Failure::Invalid(_) | Failure::Conflict(_) | Failure::TooMany(_) | Failure::Stopping
            );
            if !usual && !house.is_elsewhere(&failure) {
                house.stage.lock().fails(number, "reserving", &failure);
            }
            Vec::new()
        }
        None => {
            // What it took is out, and nobody knows what it is.
            let mut inside = house.stage.lock();
            let now = inside.world.now();
            inside.clients[number].blur(now);
            Vec::new()
        }
    }
}

pub fn begin(
    inside: &mut Inside,
    number: usize,
    messages: &[Value],
    until: Duration,
    sender: Sender,
) -> Vec<Message> {
    // What is handed out while an operator ends leases may be ended at once.
    let until = if inside.clients[number].ending > 0 { Duration::ZERO } else { until };
    let mut begun = Vec::new();
    for message in messages {
        let header = |name: &str| Some(message["headers"][name][0].as_str()?.to_owned());
        let body = match (&message["payload"], &message["body"]) {
            (Value::String(payload), _) => payload.clone(),
            (_, Value::Null) => String::new(),
            (_, body) => body.to_string(),
        };
        match Told::read(header, body.as_bytes()) {
            Ok(told) => {
                let token = message["lease"].as_str().unwrap_or_default().to_owned();
                let request = inside.begins(number, &told, Way::Lease(until), sender);
                begun.push(Message { told, token, request });
            }
            Err(error) => {
                inside.wrong(Some(number), "", format!("a message that is none: {error}: {message}"))
            }
        }
    }
    begun
}

/// Has some of the leases last longer. Flare is held to what it answers.
async fn extend(house: &Rc<House>, number: usize, name: &Name, messages: &[Message], dice: &mut Dice) {
    let lasts = Duration::from_millis(dice.between(1, 500));
    let some: Vec<&Message> = messages.iter().filter(|_| dice.percent(50)).collect();
    let line = |message: &&Message| json!({"lease": message.token, "status": "extend", "for": HumanDuration(lasts).to_string()});
    let body = json!({"messages": some.iter().map(line).collect::<Vec<_>>()});
    let (until, before): (Duration, Vec<(u64, String, Option<Duration>)>) = {
        let inside = house.stage.lock();
        let lasts_until = |message: &&Message| {
            let pair = inside.clients[number].pairs.get(&message.told.document);
            let until = pair.and_then(|pair| pair.lasts(message.request));
            (message.request, message.told.document.clone(), until)
        };
        (house.stage.time.passed() + lasts, some.iter().map(lasts_until).collect())
    };
    let (stage, name, about) = (house.stage.clone(), name.clone(), name.clone());
    house
        .ask_about(&about, async move |app, _| {
            let draft: SettleDraft = serde_json::from_value(body).expect("a settlement");
            let view = app.settle(&name.resource, &name.id, draft).await.ok()?;
            let json = serde_json::to_value(&view).expect("an answer is plain data");
            let mut inside = stage.lock();
            for (place, (request, document, since)) in before.into_iter().enumerate() {
                let extended = json["messages"][place]["outcome"] == "extended";
                let client = &mut inside.clients[number];
                if let Some(pair) = client.pairs.get_mut(&document).filter(|_| extended && since.is_some()) {
                    pair.extended(request, since, until);
                }
            }
            Some(())
        })
        .await;
}

/// Does what the client does with messages, and says what became of each.
pub async fn use_up(house: &Rc<House>, number: usize, name: Name, messages: Vec<Message>, dice: &mut Dice) {
    if !messages.is_empty() && dice.percent(20) {
        extend(house, number, &name, &messages, dice).await;
    }
    let (mut settling, mut endings) = (Vec::new(), Vec::new());
    for message in messages {
        let (status, ending) = match dice.below(10) {
            0 => ("discard", Ending::Discarded),
            1 => ("release", Ending::Failed),
            2 => {
                // Nothing is said: the lease ends by itself, whatever the client did.
                if dice.percent(50) {
                    house.stage.lock().processes(number, &message.told);
                }
                continue;
            }
            _ => {
                house.stage.lock().processes(number, &message.told);
                ("success", Ending::Delivered)
            }
        };
        settling.push(json!({"lease": message.token, "status": status}));
        endings.push((message, ending));
    }
    if settling.is_empty() {
        return;
    }
    tokio::time::sleep(Duration::from_millis(dice.below(100))).await;
    let body = json!({"messages": settling});
    let (stage, endings) = (house.stage.clone(), Rc::new(endings));
    let settling: Vec<_> =
        endings.iter().map(|(message, ending)| (message.request, &message.told, *ending)).collect();
    house.stage.lock().settles(number, &settling);
    drop(settling);
    let (said, about) = (endings.clone(), name.clone());
    let asked = house.ask_about(&about, async move |app, sender| {
        let over = over(&stage.lock(), number, &said);
        let draft: SettleDraft = serde_json::from_value(body).expect("a settlement");
        let view = app.settle(&name.resource, &name.id, draft).await.ok()?;
        // At this moment, for the same reason as above.
        let json = serde_json::to_value(&view).expect("an answer is plain data");
        settled(&mut stage.lock(), number, &said, &over, &json, sender);
        Some(())
    });
    if asked.await.flatten().is_none() {
        let mut inside = house.stage.lock();
        for (message, ending) in &*endings {
            inside.ends_perhaps(number, message.request, &message.told, *ending);
        }
    }
}

/// Which of these leases are surely over: something else of their document has begun since.
fn over(inside: &Inside, number: usize, endings: &[(Message, Ending)]) -> Vec<bool> {
    let pairs = &inside.clients[number].pairs;
    let over = |message: &Message| {
        let pair = pairs.get(&message.told.document);
        pair.is_some_and(|pair| pair.newest() > message.request)
    };
    endings.iter().map(|(message, _)| over(message)).collect()
}

fn settled(
    inside: &mut Inside,
    number: usize,
    endings: &[(Message, Ending)],
    over: &[bool],
    json: &Value,
    by: Sender,
) {
    for (place, (message, ending)) in endings.iter().enumerate() {
        let Message { told, request, .. } = message;
        match json["messages"][place]["outcome"].as_str() {
            Some("settled") if over[place] => {
                let what = format!("the word about a lease that is over counts: #{request} {told}");
                inside.wrong(Some(number), &told.document, what);
            }
            Some("settled") => inside.ends(number, *request, told, *ending, by),
            // Too late, or it had ended for another reason.
            Some("expired" | "unknown") => inside.ends(number, *request, told, Ending::Failed, by),
            other => inside.wrong(Some(number), &told.document, format!("settle answered {other:?}")),
        }
    }
}

/// An operator ends all leases.
pub async fn end_leases(house: Rc<House>, number: usize) {
    let Some(name) = house.stage.lock().clients[number].name.clone() else { return };
    {
        let mut inside = house.stage.lock();
        inside.operator_ends_leases(number);
        inside.clients[number].ending += 1;
    }
    let about = name.clone();
    let asked = house
        .ask_about(&about, async move |app, _| app.end_leases(&name.resource, &name.id, None).await.map(drop))
        .await;
    let mut inside = house.stage.lock();
    inside.operator_ends_leases(number);
    inside.clients[number].ending -= 1;
    match asked {
        Some(Ok(())) | None | Some(Err(Failure::Stopping | Failure::NotFound(_))) => {}
        Some(Err(failure)) if house.is_elsewhere(&failure) => {}
        Some(Err(failure)) => inside.fails(number, "ending leases", &failure),
    }
}

/// Has some sent now.
pub async fn drive(house: Rc<House>, number: usize) {
    let Some(name) = house.stage.lock().clients[number].name.clone() else { return };
    let query = DeliverQuery { quantity: Some(5), concurrency: None };
    let about = name.clone();
    let asked = house
        .ask_about(&about, async move |app, _| app.deliver(&name.resource, &name.id, query).await.map(drop))
        .await;
    match asked {
        // It is active, stands still, or another one is under way.
        Some(Ok(())) | None => {}
        Some(Err(Failure::Invalid(_) | Failure::Conflict(_) | Failure::Stopping | Failure::TooMany(_))) => {}
        Some(Err(failure)) if house.is_elsewhere(&failure) => {}
        Some(Err(failure)) => house.stage.lock().fails(number, "delivering", &failure),
    }
}
