//! Passive mode: clients that take notifications away, settle them or leave them lying, and deliveries on request.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Cut, Operation};
use crate::stress::api::Ask;
use crate::stress::beliefs::Ending;
use crate::stress::dice::Dice;
use crate::stress::pair::{Proof, Way};
use crate::stress::stage::Stage;
use crate::stress::told::Told;

/// A message that a client has on a lease.
pub struct Message {
    pub told: Told,
    token: String,
    request: u64,
}

pub fn draw(stage: &Stage, number: usize, dice: &mut Dice) -> Option<Operation> {
    let mut subscriptions = stage.subscriptions();
    let subscription = &mut subscriptions[number];
    if !subscription.wish.passive || subscription.pulling {
        return None;
    }
    subscription.pulling = true;
    let (quantity, lease) = (dice.between(1, 8), *dice.pick(&[30, 100, 400]));
    let (streams, dice) = (dice.percent(30), Box::new(dice.clone()));
    Some(match streams {
        true => Operation::Stream { number, quantity, lease, dice },
        false => Operation::Pull { number, quantity, lease, dice },
    })
}

/// Takes some and uses them up.
pub async fn pull(
    stage: &Stage,
    number: usize,
    quantity: u64,
    lease: u64,
    dice: &mut Dice,
) -> anyhow::Result<()> {
    let messages = reserve(stage, number, quantity, lease, dice).await;
    use_up(stage, number, messages, dice).await;
    stage.subscriptions()[number].pulling = false;
    Ok(())
}

/// Does what the client does with messages, and says what became of each.
pub async fn use_up(stage: &Stage, number: usize, messages: Vec<Message>, dice: &mut Dice) {
    let mut settling = Vec::new();
    let mut endings = Vec::new();
    for message in messages {
        let (status, ending) = match dice.below(10) {
            0 => ("discard", Ending::Discarded),
            1 => ("release", Ending::Failed),
            2 => {
                // Nothing is said: the lease ends by itself, whatever the client did.
                if dice.percent(50) {
                    stage.shared.clients().processes(number, &message.told);
                }
                continue;
            }
            _ => {
                stage.shared.clients().processes(number, &message.told);
                ("success", Ending::Delivered)
            }
        };
        settling.push(json!({"lease": message.token, "status": status}));
        endings.push((message, ending));
    }
    tokio::time::sleep(Duration::from_millis(dice.below(10))).await;
    settle(stage, number, settling, endings).await;
}

async fn reserve(stage: &Stage, number: usize, quantity: u64, lease: u64, dice: &mut Dice) -> Vec<Message> {
    let (wait, cut) = (dice.below(30), Cut::draw(dice, 10));
    let Some(path) = stage.path(number) else { return Vec::new() };
    let ask =
        Ask::new("POST", format!("{path}/reserve?quantity={quantity}&lease={lease}ms&wait={wait}ms"), "");
    // It begins after this, and so it ends after this and its time.
    let sent = Instant::now();
    let answer = match cut {
        Some(cut) => stage.api.cut(&ask, cut.part, cut.wait).await.map(|()| None),
        None => stage.api.try_send(&ask).await.map(Some),
    };
    let Ok(Some(answer)) = answer else {
        // What it took is out, and nobody knows what it is.
        let now = stage.shared.world().now();
        stage.shared.clients().list[number].blur(now);
        return Vec::new();
    };
    if answer.status != 200 {
        // It may be active by now, or gone; or others wait already.
        if !matches!(answer.status, 400 | 404 | 429 | 503) {
            stage.wrong(number, "", format!("reserve was answered {}: {}", answer.status, answer.text()));
        }
        return Vec::new();
    }
    let until = sent + Duration::from_millis(lease);
    let messages = answer.json()["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().filter_map(|message| begin(stage, number, message, until)).collect()
}

/// The client has got a message.
pub fn begin(stage: &Stage, number: usize, message: &Value, until: Instant) -> Option<Message> {
    let header = |name: &str| Some(message["headers"][name][0].as_str()?.to_owned());
    let body = match (&message["payload"], &message["body"]) {
        (Value::String(payload), _) => payload.clone(),
        (_, Value::Null) => String::new(),
        (_, body) => body.to_string(),
    };
    match Told::read(header, body.as_bytes()) {
        Ok(told) => {
            let token = message["lease"].as_str()?.to_owned();
            let world = stage.shared.world();
            let request = stage.shared.clients().begins(&world, number, &told, Way::Lease(until));
            Some(Message { told, token, request })
        }
        Err(error) => {
            stage.wrong(number, "", format!("a message that is none: {error}: {message}"));
            None
        }
    }
}

async fn settle(stage: &Stage, number: usize, settling: Vec<Value>, endings: Vec<(Message, Ending)>) {
    let path = stage.path(number);
    let answer = match path {
        Some(path) if !settling.is_empty() => {
            let body = json!({"messages": settling});
            stage.api.try_send(&Ask::new("POST", format!("{path}/settle"), &body)).await.ok()
        }
        _ => None,
    };
    let outcomes = answer.filter(|answer| answer.status == 200).map(|answer| answer.json());
    let mut clients = stage.shared.clients();
    for (place, (message, ending)) in endings.into_iter().enumerate() {
        let Message { told, request, .. } = message;
        match outcomes.as_ref().map(|json| json["messages"][place]["outcome"].as_str().unwrap_or_default()) {
            Some("settled") => clients.ends(number, request, &told, ending, Proof::Sure),
            // Too late, or it had ended for another reason.
            Some("expired" | "unknown") => {
                clients.ends(number, request, &told, Ending::Failed, Proof::None);
            }
            Some(other) => clients.wrong(number, &told.document, format!("settle answered {other:?}")),
            None => clients.ends(number, request, &told, ending, Proof::None),
        }
    }
}

/// Has some sent now.
pub async fn drive(stage: &Stage, number: usize) -> anyhow::Result<()> {
    let Some(path) = stage.path(number) else { return Ok(()) };
    let ask = Ask::new("POST", format!("{path}/deliver?quantity=5"), "");
    // 400: it is active. 409: it stands still, or another one is under way.
    if let Ok(answer) = stage.api.try_send(&ask).await
        && !matches!(answer.status, 200 | 400 | 404 | 409 | 503)
    {
        stage.wrong(number, "", format!("deliver was answered {}: {}", answer.status, answer.text()));
    }
    Ok(())
}
