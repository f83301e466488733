//! Resources: created, deleted with all they have, and created anew under the same endpoint.

use serde_json::json;

use super::{Cut, Operation, insist, subscriptions};
use crate::stress::api::Ask;
use crate::stress::dice::Dice;
use crate::stress::stage::Stage;
use crate::stress::world::Resource;

/// Where resources are: a slot has one at a time.
const SLOTS: usize = 2;

fn prefix(slot: usize) -> String {
    format!("http://origin.example/r{slot}/")
}

/// A slot that is empty is filled; one about which nothing is being done may be emptied.
pub fn draw(stage: &Stage, dice: &mut Dice) -> Option<Operation> {
    let cut = Cut::draw(dice, 20);
    let mut world = stage.shared.world();
    let taken = |resource: &Resource, slot| {
        resource.prefix == prefix(slot) && (resource.id.is_some() || resource.busy)
    };
    let empty = (0..SLOTS).find(|slot| !world.resources.iter().any(|resource| taken(resource, *slot)));
    if let Some(slot) = empty {
        let (prefix, lanes, documents) = (prefix(slot), stage.lanes[slot], Default::default());
        world.resources.push(Resource { prefix, lanes, id: None, busy: true, documents });
        return Some(Operation::Found { resource: world.resources.len() - 1, slot, cut });
    }
    let resource =
        world.resources.iter().rposition(|resource| taken(resource, dice.clone().below(2) as usize))?;
    let subscriptions = stage.subscriptions();
    let idle = |(_, s): &(usize, &crate::stress::stage::Subscription)| {
        s.resource != resource || s.id.is_none() && !s.busy || !s.busy && !s.pulling && s.changing.is_empty()
    };
    let quiet = !world.resources[resource].documents.values().any(|document| document.busy);
    if world.resources[resource].busy || !quiet || !subscriptions.iter().enumerate().all(|s| idle(&s)) {
        return None;
    }
    drop(subscriptions);
    world.resources[resource].busy = true;
    for subscription in stage.subscriptions().iter_mut().filter(|s| s.resource == resource && s.id.is_some())
    {
        subscription.busy = true;
    }
    Some(Operation::Raze { resource, cut })
}

/// The resource of a slot, at the beginning.
pub async fn create_first(stage: &Stage, slot: usize) -> anyhow::Result<()> {
    let (prefix, lanes, documents) = (prefix(slot), stage.lanes[slot], Default::default());
    stage.shared.world().resources.push(Resource { prefix, lanes, id: None, busy: true, documents });
    create(stage, slot, slot, None).await
}

/// Fills a slot.
pub async fn create(stage: &Stage, resource: usize, slot: usize, cut: Option<Cut>) -> anyhow::Result<()> {
    let lanes = stage.lanes[slot];
    let endpoint = format!("{}{{id}}", prefix(slot));
    let body = json!({"endpoint": endpoint, "change": {"field": "rev"}, "lanes": lanes});
    let (answer, again) = insist(stage, &Ask::new("POST", "/resources", &body), cut).await?;
    let id = match answer.status {
        201 => answer.json()["id"].as_str().map(ToOwned::to_owned),
        // An earlier try was heard: it is there, under its endpoint.
        409 if again => {
            let (found, _) = stage.api.send(&Ask::get("/resources?limit=100")).await?;
            let all = found.json()["resources"].as_array().cloned().unwrap_or_default();
            let ours = all.iter().find(|one| one["endpoint"] == endpoint.as_str());
            ours.and_then(|one| one["id"].as_str()).map(ToOwned::to_owned)
        }
        _ => None,
    };
    if id.is_none() {
        let what = format!("creating {endpoint} was answered {}: {}", answer.status, answer.text());
        stage.wrong(usize::MAX, "", what);
    }
    let mut world = stage.shared.world();
    (world.resources[resource].id, world.resources[resource].busy) = (id, false);
    Ok(())
}

/// First its subscriptions, in flight as they are.
pub async fn delete(stage: &Stage, resource: usize, cut: Option<Cut>) -> anyhow::Result<()> {
    let numbers: Vec<usize> = {
        let subscriptions = stage.subscriptions();
        let ours = subscriptions.iter().enumerate().filter(|(_, s)| s.resource == resource && s.id.is_some());
        ours.map(|(number, _)| number).collect()
    };
    for number in numbers {
        subscriptions::delete(stage, number, None).await?;
    }
    let id = stage.shared.world().resources[resource].id.clone().unwrap_or_default();
    let (answer, again) = insist(stage, &Ask::new("DELETE", format!("/resources/{id}"), ""), cut).await?;
    if !(answer.status == 204 || answer.status == 404 && again) {
        let what = format!("deleting resource {id} was answered {}: {}", answer.status, answer.text());
        stage.wrong(usize::MAX, "", what);
    }
    let mut world = stage.shared.world();
    (world.resources[resource].id, world.resources[resource].busy) = (None, false);
    Ok(())
}
