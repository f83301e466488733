//! What has to hold when everything is at rest: each client has what the origin said, by its filter, and Flare says the
//! same of it wherever it is asked.

use std::collections::BTreeMap;

use serde_json::Value;

use super::api::Ask;
use super::beliefs::Ending;
use super::finish;
use super::memory::Client;
use super::pair::Pair;
use super::revisions;
use super::stage::{Stage, Subscription};
use super::wish::When;
use super::world::{Document, World};

/// What a client is to have of one document in the end.
#[derive(Clone, Debug, PartialEq)]
enum Expected {
    /// This revision of it.
    This(i64, Value),
    /// It is not there, or none of the client's.
    Nothing,
    /// What it has is for others to judge: it was left as it is.
    Whatever,
}

pub async fn clients(stage: &Stage) -> anyhow::Result<()> {
    for (number, path) in finish::there(stage) {
        let (mut wrong, held) = {
            let world = stage.shared.world();
            let clients = stage.shared.clients();
            let subscription = &stage.subscriptions()[number];
            compare(&world, subscription, &clients.list[number])
        };
        wrong.extend({
            let subscriptions = stage.subscriptions();
            revisions::check(stage, &subscriptions[number], &stage.shared.clients().list[number])
        });
        for (document, what) in wrong {
            stage.wrong(number, &document, what);
        }
        let status = finish::status(stage, &path).await?;
        if let Some(held) = held
            && status["feed"]["held"] != held
        {
            stage.wrong(number, "", format!("the client has {held} documents: {status}"));
        }
        explain(stage, number).await?;
        lists(stage, number, &path).await?;
    }
    accepted(stage, usize::MAX).await
}

/// Nothing lags, and no replay is under way.
async fn lists(stage: &Stage, number: usize, path: &str) -> anyhow::Result<()> {
    let (lagging, _) = stage.api.send(&Ask::get(format!("{path}/documents?lagging=true"))).await?;
    let wrong = {
        let world = stage.shared.world();
        let clients = stage.shared.clients();
        let subscription = &stage.subscriptions()[number];
        // What is lacked and not owed was dropped, or not told, on purpose.
        let owed = |entry: &Value| {
            let url = entry["document"].as_str().unwrap_or_default();
            let document = world.resources[subscription.resource].documents.get(url);
            let pair = clients.list[number].pairs.get(url);
            let expected = document.map(|document| expected(subscription, url, document, pair));
            entry["owed"] != false || expected != Some(Expected::Whatever)
        };
        lagging.json()["documents"].as_array().is_none_or(|list| list.iter().any(owed))
    };
    if wrong {
        stage.wrong(number, "", format!("nothing is owed, and yet these lag: {}", lagging.text()));
    }
    let (replays, _) = stage.api.send(&Ask::get(format!("{path}/replays"))).await?;
    let running = |replay: &Value| replay["state"] != "done";
    if replays.json()["replays"].as_array().is_none_or(|list| list.iter().any(running)) {
        stage.wrong(number, "", format!("nothing is owed, and yet these are not done: {}", replays.text()));
    }
    Ok(())
}

/// What the client has otherwise than expected; and how many documents it has, if that is certain.
fn compare(
    world: &World,
    subscription: &Subscription,
    client: &Client,
) -> (Vec<(String, String)>, Option<usize>) {
    let documents = &world.resources[client.resource].documents;
    let mut wrong = Vec::new();
    let mut certain = true;
    for (url, document) in documents {
        let pair = client.pairs.get(url);
        let has = pair.and_then(|pair| pair.has.clone());
        match expected(subscription, url, document, pair) {
            Expected::Whatever => certain = false,
            Expected::Nothing if has.is_some() => {
                wrong.push((url.clone(), format!("the client has what it should not: {has:?}")));
            }
            Expected::This(revision, content) if has != Some((revision, content.clone())) => {
                wrong.push((
                    url.clone(),
                    format!("the client lacks revision {revision} {content}: it has {has:?}"),
                ));
            }
            Expected::Nothing | Expected::This(..) => {}
        }
    }
    (wrong, certain.then(|| client.state().count()))
}

fn expected(subscription: &Subscription, url: &str, document: &Document, pair: Option<&Pair>) -> Expected {
    let Some(newest) = document.newest() else { return Expected::Nothing };
    let ended = pair.and_then(|pair| pair.ended);
    // What the client asked to drop, and what an operator dropped, is not sent again: promise 4, "unless the policy of
    // the subscription gave it up".
    let dropped = subscription.dropped_all || subscription.dropped.contains(url);
    if ended == Some(Ending::Discarded) || dropped && ended == Some(Ending::Failed) {
        return Expected::Whatever;
    }
    let Some(content) = &newest.content else { return Expected::Nothing };
    match subscription.wish.filter.includes(content) {
        Some(true) => {}
        Some(false) => return Expected::Nothing,
        // An expression without a result leaves the client as it is.
        None => return Expected::Whatever,
    }
    // So did one that was in effect since the change; a filter that replaces it only has documents enter and leave.
    let mut before = subscription.filters.iter().filter(|(_, until)| *until > newest.began);
    if before.any(|(filter, _)| filter.includes(content).is_none()) {
        return Expected::Whatever;
    }
    // `start: now`: what was there before, and has not changed since, is not told of, unless everything was gone
    // through for another reason.
    let asked = subscription.wish.beginning || subscription.swept;
    let perhaps = subscription.perhaps_swept || subscription.asked.contains(url);
    let told = pair.is_some_and(|pair| pair.ended.is_some());
    if !asked && !told {
        let accepted = newest.accepted.unwrap_or_default();
        if accepted < subscription.began {
            return if perhaps { Expected::Whatever } else { Expected::Nothing };
        }
        // Both at the same moment: either is right.
        if newest.began < subscription.created {
            return Expected::Whatever;
        }
    }
    let has = pair.and_then(|pair| pair.has.as_ref());
    let unsaid = |when: When| match when {
        When::Always => false,
        When::Tell => content["tell"] != true,
        // What the client has differs in `n`, or it is told.
        When::Differs => has.is_some_and(|(_, has)| has["n"] == content["n"]),
    };
    // A changed `when` decides nothing again: each that was in effect since the change may have kept quiet about it.
    let before = subscription.whens.iter().filter(|(_, until)| *until > newest.began).map(|(when, _)| *when);
    match before.chain([subscription.wish.when]).any(unsaid) {
        true => Expected::Whatever,
        false => Expected::This(newest.revision, content.clone()),
    }
}

/// What Flare says of every document of the client.
async fn explain(stage: &Stage, number: usize) -> anyhow::Result<()> {
    let (urls, id) = {
        let world = stage.shared.world();
        let subscriptions = stage.subscriptions();
        let urls: Vec<String> =
            world.resources[subscriptions[number].resource].documents.keys().cloned().collect();
        (urls, subscriptions[number].id.clone().unwrap_or_default())
    };
    for url in urls {
        let (answer, _) =
            stage.api.send(&Ask::get(format!("/explain?document={url}&subscription={id}"))).await?;
        let verdict = answer.json()["verdict"].as_str().unwrap_or_default().to_owned();
        let wrong = {
            let world = stage.shared.world();
            let clients = stage.shared.clients();
            let subscriptions = stage.subscriptions();
            let (subscription, client) = (&subscriptions[number], &clients.list[number]);
            let document = &world.resources[client.resource].documents[&url];
            let pair = client.pairs.get(&url);
            let newest = document.newest().and_then(|said| said.content.as_ref());
            let filter = newest.and_then(|content| subscription.wish.filter.includes(content));
            let fits: &[&str] = match expected(subscription, &url, document, pair) {
                Expected::This(..) => &["delivered"],
                // A deletion may be forgotten, or never have been known.
                Expected::Nothing if newest.is_none() => &["notHeld", "unknown"],
                Expected::Nothing if filter == Some(false) => &["filtered"],
                Expected::Nothing => &["notHeld", "heldBack"],
                Expected::Whatever => &[
                    "delivered",
                    "notHeld",
                    "filtered",
                    "heldBack",
                    "discarded",
                    "dropped",
                    "inDoubt",
                    "unknown",
                ],
            };
            (!fits.contains(&verdict.as_str()))
                .then(|| format!("explain says {verdict:?} in place of {fits:?}: {}", answer.text()))
        };
        if let Some(what) = wrong {
            stage.wrong(number, &url, what);
        }
    }
    Ok(())
}

/// Promise 5: whatever was accepted is there; of so many documents, and of those about which nothing is being said.
pub async fn accepted(stage: &Stage, most: usize) -> anyhow::Result<()> {
    let known = || -> BTreeMap<String, Option<i64>> {
        let world = stage.shared.world();
        let there = world.resources.iter().filter(|resource| resource.id.is_some() && !resource.busy);
        let documents = there.flat_map(|resource| &resource.documents).filter(|(_, document)| !document.busy);
        let newest = |document: &Document| {
            document.newest().filter(|said| said.content.is_some()).map(|said| said.revision)
        };
        documents.map(|(url, document)| (url.clone(), newest(document))).collect()
    };
    for (url, revision) in known().into_iter().take(most) {
        let (answer, _) = stage.api.send(&Ask::get(format!("/documents/{url}"))).await?;
        let there = (answer.status == 200).then(|| answer.json()["revision"].as_i64()).flatten();
        // Something may have been said meanwhile.
        if there != revision && known().get(&url) == Some(&revision) {
            let what = format!("Flare has {there:?} where {revision:?} was accepted: {}", answer.text());
            stage.wrong(usize::MAX, &url, what);
        }
    }
    Ok(())
}
