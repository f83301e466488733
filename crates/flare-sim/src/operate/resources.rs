//! Resources: created and deleted while others are in use, also anew where one was.

use std::rc::Rc;
use std::sync::Arc;

use flare_core::operations::{App, Done, Failure};
use flare_model::access::Account;
use flare_model::ids::ResourceId;
use flare_promises::dice::Dice;
use flare_promises::world::Resource;
use serde_json::json;

use super::{AGAIN, Operation, insist};
use crate::house::House;
use crate::profile::Profile;
use crate::stage::Inside;

/// What urls of documents begin with. One resource at a time has such a beginning.
const PREFIXES: [&str; 3] = ["http://origin.test/d/", "http://origin.test/e/", "http://origin.test/d/e/"];

/// Resources that are there and stay.
pub fn existing(inside: &Inside) -> Vec<usize> {
    let resources = inside.world.resources.iter().enumerate();
    resources
        .filter(|(_, resource)| resource.id.is_some() && !resource.busy)
        .map(|(number, _)| number)
        .collect()
}

/// One more, if there is room for it.
pub fn draw_new(inside: &mut Inside, profile: &Profile, dice: &mut Dice) -> Option<Operation> {
    let used = |prefix: &str| {
        let mut there =
            inside.world.resources.iter().filter(|resource| resource.id.is_some() || resource.busy);
        there.any(|resource| resource.prefix == prefix)
    };
    let prefix = PREFIXES.into_iter().find(|prefix| !used(prefix))?;
    let lanes = *dice.pick(profile.lanes);
    let number = inside.world.resources.len();
    inside.world.resources.push(Resource {
        prefix: prefix.to_owned(),
        lanes,
        id: None,
        busy: true,
        documents: Default::default(),
    });
    Some(Operation::Open(number))
}

/// One fewer, if it is nobody's and not the last.
pub fn draw_end(inside: &mut Inside, dice: &mut Dice) -> Option<Operation> {
    let there = existing(inside);
    let number = *dice.pick(&there);
    let mut clients = inside.clients.iter().filter(|client| client.resource == number);
    let said = |resource: &Resource| resource.documents.values().any(|document| document.busy);
    let used = clients.any(|client| client.name.is_some() || client.busy);
    let resource = &mut inside.world.resources[number];
    if there.len() < 2 || used || said(resource) {
        return None;
    }
    resource.busy = true;
    Some(Operation::Close(number))
}

pub async fn create(house: Rc<House>, number: usize) {
    let (prefix, lanes) = {
        let inside = house.stage.lock();
        let resource = &inside.world.resources[number];
        (resource.prefix.clone(), resource.lanes)
    };
    let mut tried = false;
    let created = loop {
        let asked =
            insist(&house, None, |app, again| try_to_create(app, prefix.clone(), lanes, again || tried))
                .await
                .0;
        match asked {
            // It is stored, and the node has not heard of it yet.
            Ok(None) => tried = true,
            answer => break answer,
        }
        tokio::time::sleep(AGAIN).await;
    };
    let mut inside = house.stage.lock();
    let id = match created {
        Ok(id) => id.map(|id| id.to_string()),
        Err(failure) => {
            inside.wrong(None, "", format!("creating the resource {prefix} failed: {failure}"));
            None
        }
    };
    inside.note(|| format!("resource {number} is {id:?}"));
    let resource = &mut inside.world.resources[number];
    (resource.id, resource.busy) = (id, false);
}

async fn try_to_create(app: Arc<App>, prefix: String, lanes: u64, again: bool) -> Done<Option<ResourceId>> {
    let endpoint = format!("{prefix}{{id}}");
    let draft = json!({"endpoint": endpoint, "change": {"field": "rev"}, "lanes": lanes});
    let draft = serde_json::from_value(draft).expect("a resource");
    match app.create_resource(&Account::default(), draft).await {
        Ok(resource) => Ok(Some(resource.id().clone())),
        // An earlier try was heard.
        Err(Failure::Conflict(_)) if again => {
            let all = app.registry.resources(0, 100);
            Ok(all.entries.iter().find(|one| one.view.endpoint == endpoint).map(|one| one.id().clone()))
        }
        Err(failure) => Err(failure),
    }
}

pub async fn delete(house: Rc<House>, number: usize) {
    let Some(id) = house.stage.lock().world.resources[number].id.clone().map(ResourceId::new) else { return };
    let (deleted, again) = insist(&house, None, |app, _| {
        let id = id.clone();
        async move {
            if app.registry.resource(&id).is_none() {
                app.follow_catalog().await?;
            }
            app.delete_resource(&id).await
        }
    })
    .await;
    let mut inside = house.stage.lock();
    match deleted {
        Ok(()) => {}
        Err(Failure::NotFound(_)) if again => {}
        Err(failure) => inside.wrong(None, "", format!("deleting the resource {id} failed: {failure}")),
    }
    inside.note(|| format!("resource {number} is deleted"));
    let resource = &mut inside.world.resources[number];
    (resource.id, resource.busy) = (None, false);
}
