//! What is done with subscriptions: created, changed, paused, resumed, replayed, deleted.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::{Cut, Operation, documents, insist};
use crate::stress::api::Ask;
use crate::stress::dice::Dice;
use crate::stress::memory::Client;
use crate::stress::stage::{Stage, Subscription};
use crate::stress::wish::{Aspect, Wish};

/// The most subscriptions at a time.
const MOST: usize = 7;

/// Subscriptions that are there and that no operation has for itself.
pub fn existing(stage: &Stage) -> Vec<usize> {
    let subscriptions = stage.subscriptions();
    let free = |number: &usize| subscriptions[*number].id.is_some() && !subscriptions[*number].busy;
    (0..subscriptions.len()).filter(free).collect()
}

/// One of them.
pub fn draw_existing(stage: &Stage, dice: &mut Dice) -> Option<usize> {
    let there = existing(stage);
    (!there.is_empty()).then(|| *dice.pick(&there))
}

pub fn draw_new(stage: &Stage, dice: &mut Dice) -> Option<Operation> {
    let there = stage.resources();
    let mut world = stage.shared.world();
    let mut subscriptions = stage.subscriptions();
    if there.is_empty() || subscriptions.iter().filter(|s| s.id.is_some() || s.busy).count() >= MOST {
        return None;
    }
    let resource = *dice.pick(&there);
    let wish = Wish::draw(dice, stage.hosts.len(), world.resources[resource].lanes);
    let number = subscriptions.len();
    let client = Client::new(resource, wish.filter, dice.fork(number as u64), dice.percent(30));
    stage.shared.clients().list.push(client);
    let began = world.now();
    subscriptions.push(Subscription {
        resource,
        always_all: wish.all,
        wish,
        id: None,
        path: String::new(),
        began,
        created: began,
        busy: true,
        changing: Vec::new(),
        whens: Vec::new(),
        filters: Vec::new(),
        swept: false,
        perhaps_swept: false,
        asked: BTreeSet::new(),
        dropped: BTreeSet::new(),
        dropped_all: false,
        pulling: false,
    });
    Some(Operation::Subscribe { number, cut: Cut::draw(dice, 15) })
}

pub fn draw_end(stage: &Stage, number: usize, dice: &mut Dice) -> Option<Operation> {
    let mut subscriptions = stage.subscriptions();
    // One or two are always left.
    let there = subscriptions.iter().filter(|s| s.id.is_some() && !s.busy).count();
    if there <= 2 || subscriptions[number].pulling || !subscriptions[number].changing.is_empty() {
        return None;
    }
    subscriptions[number].busy = true;
    Some(Operation::Unsubscribe { number, cut: Cut::draw(dice, 20) })
}

pub fn draw_change(stage: &Stage, number: usize, dice: &mut Dice) -> Option<Operation> {
    let world = stage.shared.world();
    let mut subscriptions = stage.subscriptions();
    let subscription = &mut subscriptions[number];
    let lanes = world.resources[subscription.resource].lanes;
    let mut wish = subscription.wish.clone();
    let mut aspects = Vec::new();
    for _ in 0..dice.between(1, 3) {
        let aspect = *dice.pick(&Aspect::ALL);
        // How many shards there may be depends on the concurrency: one of them at a time.
        let related = [Aspect::Shards, Aspect::Concurrency];
        let meets = |other: &Aspect| *other == aspect || related.contains(other) && related.contains(&aspect);
        if !subscription.changing.iter().chain(&aspects).any(meets) {
            wish.change(aspect, dice, stage.hosts.len(), lanes);
            aspects.push(aspect);
        }
    }
    if aspects.is_empty() {
        return None;
    }
    subscription.changing.extend(&aspects);
    Some(Operation::Change { number, aspects, wish: Box::new(wish), cut: Cut::draw(dice, 15) })
}

pub fn draw_replay(stage: &Stage, number: usize, dice: &mut Dice) -> Operation {
    let scope = *dice.pick(&["all", "lagging", "deadLetters", "all"]);
    let document = dice.percent(30).then(|| documents::draw_url(stage, number, dice)).flatten();
    Operation::Replay { number, scope, document, cut: Cut::draw(dice, 15) }
}

fn body(stage: &Stage, number: usize, wish: &Wish) -> Value {
    wish.body(&stage.hosts[wish.host].to_string(), number)
}

pub async fn create(stage: &Stage, number: usize, cut: Option<Cut>) -> anyhow::Result<()> {
    let (resource, wish) = {
        let subscriptions = stage.subscriptions();
        (subscriptions[number].resource, subscriptions[number].wish.clone())
    };
    let Some(id) = stage.shared.world().resources[resource].id.clone() else { return Ok(()) };
    let (list, body) = (format!("/resources/{id}/subscriptions"), body(stage, number, &wish));
    let (answer, again) = insist(stage, &Ask::new("POST", &list, &body), cut).await?;
    let created = match answer.status {
        201 => answer.json()["id"].as_str().map(ToOwned::to_owned),
        // An earlier try was heard: it is there, under its url. Or it is refused now, by a limit that was lowered.
        409 | 400 if again => {
            let (found, _) = stage.api.send(&Ask::get(format!("{list}?limit=100"))).await?;
            let all = found.json()["subscriptions"].as_array().cloned().unwrap_or_default();
            let ours = all.iter().find(|one| one["endpoint"]["url"] == body["endpoint"]["url"]);
            let id = ours.and_then(|one| one["id"].as_str()).map(ToOwned::to_owned);
            if id.is_none() && answer.status == 409 {
                stage.wrong(number, "", format!("it is there (409) and not in the list: {}", answer.text()));
            }
            id
        }
        400 if stage.lowers && !again => None,
        status => {
            stage.wrong(number, "", format!("creating it was answered {status}: {}: {body}", answer.text()));
            None
        }
    };
    let now = stage.shared.world().now();
    let mut subscriptions = stage.subscriptions();
    let subscription = &mut subscriptions[number];
    (subscription.busy, subscription.created) = (false, now);
    subscription.path = created.as_ref().map_or(String::new(), |id| format!("{list}/{id}"));
    subscription.id = created;
    Ok(())
}

pub async fn delete(stage: &Stage, number: usize, cut: Option<Cut>) -> anyhow::Result<()> {
    let path = stage.path(number).context("it was drawn because it is there")?;
    let (answer, again) = insist(stage, &Ask::new("DELETE", &path, ""), cut).await?;
    match answer.status {
        204 => {}
        404 if again => {}
        status => stage.wrong(number, "", format!("deleting it was answered {status}: {}", answer.text())),
    }
    {
        let mut subscriptions = stage.subscriptions();
        (subscriptions[number].busy, subscriptions[number].id) = (false, None);
        stage.shared.clients().list[number].quiet = Some((Instant::now(), "deleted"));
    }
    // Gone everywhere, at once.
    let (seen, _) = stage.api.send(&Ask::get(&path)).await?;
    if seen.status != 404 {
        stage.wrong(number, "", format!("it is deleted, and shown: {}", seen.text()));
    }
    Ok(())
}

/// Changes some aspects; what another change did meanwhile stays.
pub async fn change(
    stage: &Stage,
    number: usize,
    aspects: &[Aspect],
    wish: Wish,
    cut: Option<Cut>,
) -> anyhow::Result<()> {
    let Some(path) = stage.path(number) else { return Ok(()) };
    let whole = body(stage, number, &wish);
    let mut patch = json!({});
    for aspect in aspects {
        merge(&mut patch, wish.said(*aspect, &whole));
    }
    if aspects.contains(&Aspect::Filter) {
        stage.shared.clients().list[number].refilter(wish.filter);
    }
    let ask = Ask::new("PATCH", &path, &patch);
    let mut cut = cut;
    // Someone else changed it at the same moment: again, but not for ever.
    let mut answer = insist(stage, &ask, cut.take()).await?.0;
    for _ in 0..200 {
        if answer.status != 409 {
            break;
        }
        answer = insist(stage, &ask, None).await?.0;
    }
    let now = stage.shared.world().now();
    let mut subscriptions = stage.subscriptions();
    let subscription = &mut subscriptions[number];
    subscription.changing.retain(|aspect| !aspects.contains(aspect));
    match answer.status {
        200 => {
            let refiltered = aspects.contains(&Aspect::Filter);
            // A filter that says the same decides nothing again.
            subscription.swept |= refiltered && subscription.wish.filter != wish.filter;
            if refiltered {
                subscription.filters.push((subscription.wish.filter, now));
            }
            if aspects.contains(&Aspect::When) {
                subscription.whens.push((subscription.wish.when, now));
            }
            for aspect in aspects {
                subscription.wish.take(*aspect, &wish);
            }
            subscription.always_all &= !aspects.contains(&Aspect::Revision);
            if refiltered {
                stage.shared.clients().list[number].refiltered(wish.filter);
            }
        }
        status => {
            if aspects.contains(&Aspect::Filter) {
                stage.shared.clients().list[number].refiltered(subscription.wish.filter);
            }
            let leaving = subscription.id.is_none() || subscription.busy;
            if status == 404 && leaving || status == 400 && stage.lowers {
                return Ok(());
            }
            let what = format!("PATCH {patch} was answered {status}: {}", answer.text());
            stage.wrong(number, "", what);
        }
    }
    Ok(())
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(json!({})), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// An operation without a body on a subscription that may be on its way out.
async fn post(stage: &Stage, number: usize, what: &str, mut cut: Option<Cut>) -> anyhow::Result<bool> {
    let Some(path) = stage.path(number) else { return Ok(false) };
    let ask = Ask::new("POST", format!("{path}/{what}"), "");
    for _ in 0..400 {
        let (answer, _) = insist(stage, &ask, cut.take()).await?;
        match answer.status {
            200 => return Ok(true),
            404 if is_leaving(stage, number) => return Ok(false),
            // An attempt is still open: try again.
            409 => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            status => bail!("{what} was answered {status}: {}", answer.text()),
        }
    }
    stage.wrong(number, "", format!("{what} was answered 409 for four seconds"));
    Ok(false)
}

fn is_leaving(stage: &Stage, number: usize) -> bool {
    let subscriptions = stage.subscriptions();
    subscriptions[number].id.is_none() || subscriptions[number].busy
}

pub async fn pause(stage: &Stage, number: usize, cut: Option<Cut>) -> anyhow::Result<()> {
    post(stage, number, "pause", cut).await.map(drop)
}

pub async fn resume(stage: &Stage, number: usize, cut: Option<Cut>) -> anyhow::Result<()> {
    if stage.forgets {
        // If it was disabled because it was in the way, everything begins again and is in doubt.
        let now = stage.shared.world().now();
        stage.subscriptions()[number].perhaps_swept = true;
        let client = &mut stage.shared.clients().list[number];
        client.beginnings += 1;
        client.blur(now);
    }
    post(stage, number, "resume", cut).await.map(drop)
}

pub async fn replay(
    stage: &Stage,
    number: usize,
    scope: &'static str,
    document: Option<String>,
    cut: Option<Cut>,
) -> anyhow::Result<()> {
    let Some(path) = stage.path(number) else { return Ok(()) };
    {
        let mut subscriptions = stage.subscriptions();
        let subscription = &mut subscriptions[number];
        match &document {
            Some(document) => drop(subscription.asked.insert(document.clone())),
            None => subscription.perhaps_swept |= scope == "all",
        }
    }
    let body = match &document {
        Some(document) => json!({"document": document}),
        None => json!({"scope": scope}),
    };
    // Not repeated when its answer is lost: one that was heard is enough, and one that was not is not missed.
    let ask = Ask::new("POST", format!("{path}/replay"), &body);
    if let Some(cut) = cut {
        return stage.api.cut(&ask, cut.part, cut.wait).await;
    }
    match stage.api.try_send(&ask).await {
        Ok(answer) if answer.status == 202 => {
            let everything = document.is_none() && scope == "all";
            stage.subscriptions()[number].swept |= everything;
        }
        // 409: another one is under way.
        Ok(answer) if matches!(answer.status, 409 | 503) => {}
        Ok(answer) if answer.status == 404 && is_leaving(stage, number) => {}
        // It was never there, or its deletion is forgotten.
        Ok(answer)
            if answer.status == 400 && document.is_some() && !lives(stage, number, document.as_deref()) => {}
        Ok(answer) => {
            stage.wrong(
                number,
                "",
                format!("replay {body} was answered {}: {}", answer.status, answer.text()),
            );
        }
        Err(_) => {}
    }
    Ok(())
}

fn lives(stage: &Stage, number: usize, document: Option<&str>) -> bool {
    let resource = stage.subscriptions()[number].resource;
    let world = stage.shared.world();
    let documents = &world.resources[resource].documents;
    document.and_then(|document| documents.get(document)).is_some_and(|document| document.lives())
}

pub async fn drop_dead(stage: &Stage, number: usize, document: Option<String>) -> anyhow::Result<()> {
    let Some(path) = stage.path(number) else { return Ok(()) };
    {
        let mut subscriptions = stage.subscriptions();
        match &document {
            Some(document) => drop(subscriptions[number].dropped.insert(document.clone())),
            None => subscriptions[number].dropped_all = true,
        }
    }
    let query = document.map_or(String::new(), |document| format!("?document={document}"));
    let (answer, _) =
        insist(stage, &Ask::new("DELETE", format!("{path}/dead-letters{query}"), ""), None).await?;
    if !matches!(answer.status, 204 | 404) {
        stage.wrong(number, "", format!("dropping dead letters was answered {}", answer.status));
    }
    Ok(())
}
