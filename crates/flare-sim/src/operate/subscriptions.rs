//! What is done with subscriptions: created, changed, paused, resumed, replayed, deleted, each until it is answered.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use flare_core::operations::{App, Done, Failure, ReplayDraft};
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::subscription::{Draft, PauseDraft, PausedBy};
use flare_promises::dice::Dice;
use flare_promises::wish::{Aspect, Wish};
use serde_json::{Value, json};

use super::{AGAIN, Operation, insist, resources};
use crate::client::{Client, Name};
use crate::house::House;
use crate::profile::Profile;
use crate::stage::Inside;

/// The most subscriptions at a time.
const MOST: usize = 4;

/// The hosts that clients have.
const HOSTS: usize = 2;

/// How often something that others were quicker with is tried again.
const TRIES: usize = 200;

/// Subscriptions that are there and that no operation has for itself.
pub fn existing(inside: &Inside) -> Vec<usize> {
    let free = |number: &usize| inside.clients[*number].name.is_some() && !inside.clients[*number].busy;
    (0..inside.clients.len()).filter(free).collect()
}

pub fn draw_new(inside: &mut Inside, profile: &Profile, dice: &mut Dice) -> Option<Operation> {
    if inside.clients.iter().filter(|client| client.name.is_some() || client.busy).count() >= MOST {
        return None;
    }
    let resource = *dice.pick(&resources::existing(inside));
    let wish = profile.wish(dice, HOSTS, inside.world.resources[resource].lanes);
    let (number, began) = (inside.clients.len(), inside.world.now());
    let client = Client::new(resource, wish, dice.fork(number as u64), dice.percent(30), began, inside.lag());
    inside.clients.push(client);
    Some(Operation::Subscribe(number))
}

pub fn draw_end(inside: &mut Inside, number: usize) -> Option<Operation> {
    let alone = existing(inside).len() < 2;
    let client = &mut inside.clients[number];
    if alone || client.pulling > 0 || client.standing || !client.changing.is_empty() {
        return None;
    }
    client.busy = true;
    Some(Operation::Unsubscribe(number))
}

pub fn draw_change(
    inside: &mut Inside,
    number: usize,
    profile: &Profile,
    dice: &mut Dice,
) -> Option<Operation> {
    let lanes = inside.world.resources[inside.clients[number].resource].lanes;
    let client = &mut inside.clients[number];
    let mut wish = client.wish.clone();
    let mut aspects = Vec::new();
    for _ in 0..dice.between(1, 2) {
        let aspect = *dice.pick(profile.aspects);
        // How many shards there may be depends on the concurrency: one of them at a time.
        let related = [Aspect::Shards, Aspect::Concurrency];
        let meets = |other: &Aspect| *other == aspect || related.contains(other) && related.contains(&aspect);
        if !client.changing.iter().chain(&aspects).any(meets) {
            wish.change(aspect, dice, HOSTS, lanes);
            aspects.push(aspect);
        }
    }
    client.changing.extend(&aspects);
    (!aspects.is_empty()).then(|| Operation::Change { number, aspects, wish: Box::new(wish) })
}

pub fn draw_replay(inside: &Inside, number: usize, dice: &mut Dice) -> Operation {
    let scope = *dice.pick(&["all", "lagging", "deadLetters", "all"]);
    let urls: Vec<&String> =
        inside.world.resources[inside.clients[number].resource].documents.keys().collect();
    let document = (!urls.is_empty() && dice.percent(30)).then(|| (*dice.pick(&urls)).clone());
    Operation::Replay { number, scope, document }
}

fn body(number: usize, wish: &Wish) -> Value {
    wish.body(&format!("client{}.test", wish.host), number)
}

pub async fn create(house: Rc<House>, number: usize) {
    let (body, resource) = {
        let inside = house.stage.lock();
        let client = &inside.clients[number];
        let resource = inside.world.resources[client.resource].id.clone().unwrap_or_default();
        (body(number, &client.wish), ResourceId::new(resource))
    };
    let mut tried = false;
    let created = loop {
        let asked = insist(&house, None, |app, again| {
            try_to_create(app, resource.clone(), body.clone(), again || tried)
        })
        .await
        .0;
        match asked {
            // It is stored, and the node, which has just learnt of it, could not read it: whoever comes next has it do so.
            Ok(None) => tried = true,
            answer => break answer,
        }
        tokio::time::sleep(AGAIN).await;
    };
    let mut inside = house.stage.lock();
    let now = inside.world.now();
    let id: Option<SubscriptionId> = match created {
        Ok(id) => id,
        Err(failure) => {
            inside.wrong(Some(number), "", format!("creating it failed: {failure}: {body}"));
            None
        }
    };
    inside.note(|| format!("client {number} is {id:?}: {body}"));
    let client = &mut inside.clients[number];
    (client.busy, client.created) = (false, now);
    client.name = id.map(|id| Name { resource, id });
}

async fn try_to_create(
    app: Arc<App>,
    resource: ResourceId,
    body: Value,
    again: bool,
) -> Done<Option<SubscriptionId>> {
    let draft: Draft = serde_json::from_value(body.clone()).expect("a draft");
    if app.registry.resource(&resource).is_none() {
        // As the API does it: another node may have created it just now.
        app.follow_catalog().await?;
    }
    match app.create_subscription(&resource, draft).await {
        Ok((subscription, _)) => Ok(Some(subscription.id().clone())),
        // An earlier try was heard: it is there, under its url.
        Err(Failure::Conflict(_)) if again => {
            let all = app.registry.subscriptions(&resource, 0, 100);
            let mine = |draft: &Draft| {
                serde_json::to_value(draft)
                    .is_ok_and(|draft| draft["endpoint"]["url"] == body["endpoint"]["url"])
            };
            Ok(all.entries.iter().find(|one| mine(&one.stored.draft)).map(|one| one.id().clone()))
        }
        Err(failure) => Err(failure),
    }
}

pub async fn delete(house: Rc<House>, number: usize) {
    let Some(name) = house.stage.lock().clients[number].name.clone() else { return };
    let (deleted, again) = insist(&house, None, |app, _| {
        let name = name.clone();
        async move {
            if app.registry.subscription_by_id(&name.id).is_none() {
                app.follow_catalog().await?;
            }
            app.delete_subscription(&name.resource, &name.id).await
        }
    })
    .await;
    let mut inside = house.stage.lock();
    match deleted {
        Ok(()) => {}
        Err(Failure::NotFound(_)) if again => {}
        Err(failure) => inside.wrong(Some(number), "", format!("deleting it failed: {failure}")),
    }
    inside.note(|| format!("client {number} is deleted"));
    let now = inside.node_time();
    let client = &mut inside.clients[number];
    (client.busy, client.name, client.quiet) = (false, None, Some((now, "deleted")));
}

/// Changes some aspects; what another change did meanwhile stays.
pub async fn change(house: Rc<House>, number: usize, aspects: Vec<Aspect>, wish: Wish) {
    let Some(name) = house.stage.lock().clients[number].name.clone() else { return };
    let whole = body(number, &wish);
    let mut patch = json!({});
    for aspect in &aspects {
        merge(&mut patch, wish.said(*aspect, &whole));
    }
    let refilters = aspects.contains(&Aspect::Filter);
    house.stage.lock().clients[number].forgiven += 1;
    if refilters {
        house.stage.lock().clients[number].refilter(wish.filter);
    }
    let changed = persist(&house, &name, |app| {
        let (name, patch) = (name.clone(), patch.clone());
        async move { try_to_change(app, name, patch).await }
    })
    .await;
    let mut inside = house.stage.lock();
    let (now, node_time) = (inside.world.now(), inside.node_time());
    inside.note(|| format!("client {number} is changed: {patch}"));
    let client = &mut inside.clients[number];
    client.changing.retain(|aspect| !aspects.contains(aspect));
    client.forgiven += 1;
    match changed {
        Ok(()) => {
            // A filter that says the same decides nothing again.
            client.swept |= refilters && client.wish.filter != wish.filter;
            if refilters {
                client.former.push((client.wish.filter, now));
                client.refiltered(wish.filter, node_time);
            }
            if aspects.contains(&Aspect::When) {
                client.whens.push((client.wish.when, now));
            }
            aspects.iter().for_each(|aspect| client.wish.take(*aspect, &wish));
            client.always_all &= !aspects.contains(&Aspect::Revision);
        }
        Err(failure) => {
            if refilters {
                client.refiltered(client.wish.filter, node_time);
            }
            if client.name.is_some() && !client.busy {
                inside.wrong(Some(number), "", format!("PATCH {patch} failed: {failure}"));
            }
        }
    }
}

/// Applies a merge patch.
pub async fn try_to_change(app: Arc<App>, name: Name, patch: Value) -> Done<()> {
    let patch = serde_json::value::to_raw_value(&patch).expect("a patch is plain data");
    app.patch_subscription(&name.resource, &name.id, &patch).await.map(drop)
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

/// Asks until it is answered, and again where somebody else was quicker.
pub async fn persist<F: Future<Output = Done<()>> + 'static>(
    house: &House,
    name: &Name,
    ask: impl Fn(Arc<App>) -> F,
) -> Done<()> {
    let mut tries = 0;
    loop {
        match insist(house, Some(name), |app, _| ask(app)).await.0 {
            Err(Failure::Conflict(_)) if tries < TRIES => tries += 1,
            answer => return answer,
        }
        tokio::time::sleep(AGAIN).await;
    }
}

pub async fn pause(house: Rc<House>, number: usize) {
    let Some(name) = house.stage.lock().clients[number].name.clone() else { return };
    let paused = persist(&house, &name, |app| {
        let name = name.clone();
        async move {
            let pause = PauseDraft { reason: Some("the schedule says so".to_owned()) };
            app.pause(&name.resource, &name.id, PausedBy::Api, pause).await.map(drop)
        }
    })
    .await;
    let mut inside = house.stage.lock();
    inside.note(|| format!("client {number} is paused: {}", paused.is_ok()));
    let now = inside.node_time();
    inside.clients[number].standing = false;
    match paused {
        Ok(()) => inside.clients[number].quiet = Some((now, "paused")),
        Err(failure) => inside.fails(number, "pausing it", &failure),
    }
}

pub async fn resume(house: Rc<House>, number: usize) {
    let name = {
        let client = &mut house.stage.lock().clients[number];
        client.quiet = None;
        client.forgiven += 1;
        client.name.clone()
    };
    let Some(name) = name else { return };
    let resumed = persist(&house, &name, |app| {
        let name = name.clone();
        async move { app.resume(&name.resource, &name.id).await.map(drop) }
    })
    .await;
    let mut inside = house.stage.lock();
    inside.note(|| format!("client {number} is resumed: {}", resumed.is_ok()));
    inside.clients[number].standing = false;
    inside.clients[number].forgiven += 1;
    if let Err(failure) = resumed {
        inside.fails(number, "resuming it", &failure);
    }
}

pub async fn replay(house: Rc<House>, number: usize, scope: &'static str, document: Option<String>) {
    let name = {
        let client = &mut house.stage.lock().clients[number];
        client.replays += 1;
        match &document {
            Some(document) => drop(client.asked.insert(document.clone())),
            None => client.perhaps_swept |= scope == "all",
        }
        client.name.clone()
    };
    let Some(name) = name else {
        house.stage.lock().clients[number].answered_replays += 1;
        return;
    };
    let body = match &document {
        Some(document) => json!({"document": document}),
        None => json!({"scope": scope}),
    };
    // Not repeated when its answer is lost: one that was heard is enough, and one that was not is not missed.
    let draft: ReplayDraft = serde_json::from_value(body).expect("a replay");
    let about = name.clone();
    let asked = house
        .ask_about(&about, async move |app, _| app.replay(&name.resource, &name.id, draft).await.map(drop))
        .await;
    let mut inside = house.stage.lock();
    inside.clients[number].answered_replays += 1;
    inside
        .note(|| format!("client {number} replays {scope} {document:?}: {}", matches!(asked, Some(Ok(())))));
    match asked {
        Some(Ok(())) => inside.clients[number].swept |= document.is_none() && scope == "all",
        // Another one is under way; or the document was never there.
        Some(Err(Failure::Conflict(_) | Failure::Store(_) | Failure::Stopping)) | None => {}
        Some(Err(Failure::Invalid(_))) if document.is_some() => {}
        Some(Err(failure)) => inside.fails(number, "replaying", &failure),
    }
}
