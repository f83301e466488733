//! What has to hold when everything is at rest: each client has what the origin said, by its filter, Flare says the same of
//! it, and whatever was accepted is there.

use flare_model::url::DocumentUrl;
use flare_promises::beliefs::Ending;
use flare_promises::wish::When;
use flare_promises::world::Document;
use serde_json::Value;

use crate::client::Client;
use crate::house::House;
use crate::operate::insist;
use crate::pair::Pair;
use crate::rest;

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

pub async fn clients(house: &House) {
    for (number, name) in rest::there(house) {
        let held = compare(house, number);
        let (status, _) = insist(house, Some(&name), |app, _| {
            let name = name.clone();
            async move { app.status(&name.resource, &name.id).await }
        })
        .await;
        if let (Ok(status), Some(held)) = (status, held)
            && status.feed.held != held
        {
            let what = format!("the client has {held} documents, and Flare says {}", status.feed.held);
            house.stage.lock().wrong(Some(number), "", what);
        }
    }
    accepted(house).await;
}

/// What the client has otherwise than expected is wrong. Answers how many documents it has, if that is certain.
fn compare(house: &House, number: usize) -> Option<u64> {
    let mut inside = house.stage.lock();
    let client = &inside.clients[number];
    let mut wrong = Vec::new();
    let mut certain = true;
    for (url, document) in &inside.world.resources[client.resource].documents {
        let pair = client.pairs.get(url);
        let has = pair.and_then(|pair| pair.has.clone());
        match expected(client, url, document, pair) {
            Expected::Whatever => certain = false,
            Expected::Nothing if has.is_some() => {
                wrong.push((url.clone(), format!("the client has what it should not: {has:?}")));
            }
            Expected::This(revision, content) if has != Some((revision, content.clone())) => {
                let what = format!("the client lacks revision {revision} {content}: it has {has:?}");
                wrong.push((url.clone(), what));
            }
            Expected::Nothing | Expected::This(..) => {}
        }
    }
    let held = client.pairs.values().filter(|pair| pair.has.is_some()).count() as u64;
    let certain = certain && wrong.is_empty();
    for (url, what) in wrong {
        inside.wrong(Some(number), &url, what);
    }
    certain.then_some(held)
}

fn expected(client: &Client, url: &str, document: &Document, pair: Option<&Pair>) -> Expected {
    let Some(newest) = document.newest() else { return Expected::Nothing };
    // What the client asked to drop is not sent again: promise 4, "unless the policy of the subscription gave it up".
    if pair.and_then(|pair| pair.ended) == Some(Ending::Discarded) {
        return Expected::Whatever;
    }
    // Nor is what was given up, once the operator has dropped it: also if no connection came about, and so no request.
    let given_up = !pair.is_some_and(|pair| pair.has_delivered(newest.revision));
    if given_up && client.may_have_dropped(url, newest.began) {
        return Expected::Whatever;
    }
    let Some(content) = &newest.content else { return Expected::Nothing };
    match client.wish.filter.includes(content) {
        Some(true) => {}
        Some(false) => return Expected::Nothing,
        // An expression without a result leaves the client as it is.
        None => return Expected::Whatever,
    }
    // So did one that was in effect since the change; a filter that replaces it only has documents enter and leave.
    let mut before = client.former.iter().filter(|(_, until)| *until > newest.began);
    if before.any(|(filter, _)| filter.includes(content).is_none()) {
        return Expected::Whatever;
    }
    // `start: now`: what was there before, and has not changed since, is not told of, unless everything was gone
    // through for another reason.
    let asked = client.wish.beginning || client.swept;
    let perhaps = client.perhaps_swept || client.asked.contains(url);
    let told = pair.is_some_and(|pair| pair.ended.is_some());
    if !asked && !told {
        if newest.accepted.unwrap_or_default() < client.began {
            return if perhaps { Expected::Whatever } else { Expected::Nothing };
        }
        // Both at the same moment: either is right.
        if newest.began < client.created {
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
    let before = client.whens.iter().filter(|(_, until)| *until > newest.began).map(|(when, _)| *when);
    match before.chain([client.wish.when]).any(unsaid) {
        true => Expected::Whatever,
        false => Expected::This(newest.revision, content.clone()),
    }
}

/// Promise 5: whatever was accepted is there.
async fn accepted(house: &House) {
    let known: Vec<(String, Option<i64>)> = {
        let inside = house.stage.lock();
        let live = |document: &Document| {
            document.newest().filter(|said| said.content.is_some()).map(|said| said.revision)
        };
        let there = inside.world.resources.iter().filter(|resource| resource.id.is_some());
        let documents = there.flat_map(|resource| &resource.documents);
        documents.map(|(url, document)| (url.clone(), live(document))).collect()
    };
    for (url, revision) in known {
        let parsed = DocumentUrl::parse(&url).expect("urls of documents are right");
        let found = house.ask(async move |app, _| {
            let found = app.document(&flare_model::access::Caller::anybody(), &parsed).await;
            found.ok().map(|(_, document)| document)
        });
        let there = found.await.flatten().filter(|document| !document.row.deleted);
        let there = there.map(|document| document.revision.to_string());
        if there != revision.map(|revision| revision.to_string()) {
            house.stage.wrong(format!("Flare has {there:?} of {url} where {revision:?} was accepted"));
        }
    }
}
