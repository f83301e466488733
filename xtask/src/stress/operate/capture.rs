//! Resources that overlap: a more specific one is created while documents that it would capture are being said. Whatever
//! is accepted can be read afterwards, whichever resource it belongs to by then.

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;

use super::{Cut, Operation, insist};
use crate::stress::api::Ask;
use crate::stress::dice::Dice;
use crate::stress::stage::Stage;

/// How many documents race with the resource.
const DOCUMENTS: u64 = 4;

pub fn draw(stage: &Stage, dice: &mut Dice) -> Option<Operation> {
    // Each has a place of its own, so that nothing else meets it.
    let place = stage.places.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    Some(Operation::Capture { place, first: dice.below(DOCUMENTS + 1), cut: Cut::draw(dice, 20) })
}

fn documents(place: u64) -> impl Iterator<Item = String> {
    (0..DOCUMENTS).map(move |number| format!("http://origin.example/o{place}/me/{number}"))
}

/// `first`: so many documents are said before the resource is, the others beside it.
pub async fn capture(stage: &Arc<Stage>, place: u64, first: u64, cut: Option<Cut>) -> anyhow::Result<()> {
    let (wide, narrow) = (endpoint(place, "{x}"), endpoint(place, "me"));
    if !create(stage, &wide, None).await? {
        stage.wrong(usize::MAX, "", format!("{wide} cannot be created"));
        return Ok(());
    }
    let urls: Vec<String> = documents(place).collect();
    let (before, beside) = urls.split_at(first as usize);
    for url in before {
        put(stage.clone(), url.clone(), 1).await?;
    }
    let mut saying = JoinSet::new();
    for url in beside {
        saying.spawn(put(stage.clone(), url.clone(), 1));
    }
    let created = create(stage, &narrow, cut).await?;
    while let Some(said) = saying.join_next().await {
        said??;
    }
    if created && !before.is_empty() {
        stage.wrong(usize::MAX, &before[0], format!("{narrow} captures documents that were there"));
    }
    read(stage, &urls, Some(1)).await?;
    if !created {
        // The advice is to delete them first.
        for url in &urls {
            insist(stage, &Ask::new("DELETE", format!("/documents/{url}"), ""), None).await?;
        }
        if !create(stage, &narrow, None).await? {
            stage.wrong(usize::MAX, &urls[0], format!("{narrow} is refused though all of it is deleted"));
        }
    }
    put(stage.clone(), urls[0].clone(), 2).await?;
    read(stage, &urls[..1], Some(2)).await?;
    for endpoint in [narrow, wide] {
        delete(stage, &endpoint).await?;
    }
    read(stage, &urls, None).await
}

fn endpoint(place: u64, part: &str) -> String {
    format!("http://origin.example/o{place}/{part}/{{id}}")
}

async fn put(stage: Arc<Stage>, url: String, revision: i64) -> anyhow::Result<()> {
    let ask = Ask::new("PUT", format!("/documents/{url}"), json!({"rev": revision}));
    let (answer, _) = insist(&stage, &ask, None).await?;
    if answer.status != 202 {
        stage.wrong(usize::MAX, &url, format!("it was answered {}: {}", answer.status, answer.text()));
    }
    Ok(())
}

/// All of these are at a revision, or not there.
async fn read(stage: &Stage, urls: &[String], revision: Option<i64>) -> anyhow::Result<()> {
    for url in urls {
        let (answer, _) = stage.api.send(&Ask::get(format!("/documents/{url}"))).await?;
        let there = (answer.status == 200).then(|| answer.json()["revision"].as_i64()).flatten();
        if there != revision {
            let what = format!("it was accepted and is gone: {there:?} in place of {revision:?}");
            stage.wrong(usize::MAX, url, what);
        }
    }
    Ok(())
}

/// Whether it is there now: created by this try or one before, and not refused.
async fn create(stage: &Stage, endpoint: &str, cut: Option<Cut>) -> anyhow::Result<bool> {
    let body = json!({"endpoint": endpoint, "change": {"field": "rev"}, "lanes": 2});
    let (answer, _) = insist(stage, &Ask::new("POST", "/resources", &body), cut).await?;
    Ok(answer.status == 201 || find(stage, endpoint).await?.is_some())
}

async fn find(stage: &Stage, endpoint: &str) -> anyhow::Result<Option<String>> {
    let (found, _) = stage.api.send(&Ask::get("/resources?limit=100")).await?;
    let all = found.json()["resources"].as_array().cloned().unwrap_or_default();
    let ours = all.iter().find(|one| one["endpoint"] == endpoint);
    Ok(ours.and_then(|one| one["id"].as_str()).map(ToOwned::to_owned))
}

async fn delete(stage: &Stage, endpoint: &str) -> anyhow::Result<()> {
    let Some(id) = find(stage, endpoint).await? else { return Ok(()) };
    let (answer, again) = insist(stage, &Ask::new("DELETE", format!("/resources/{id}"), ""), None).await?;
    if !(answer.status == 204 || answer.status == 404 && again) {
        stage.wrong(usize::MAX, "", format!("deleting {endpoint} was answered {}", answer.status));
    }
    Ok(())
}
