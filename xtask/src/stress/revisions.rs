//! `revision: all`: every accepted revision is told, in order and without a hole.

use super::beliefs::Action;
use super::memory::Client;
use super::stage::{Stage, Subscription};
use super::wish::{Filter, When};
use super::world::Document;

/// A revision, and whether it is a deletion.
type Step = (i64, bool);

/// What a client was told otherwise than it should have been.
pub fn check(stage: &Stage, subscription: &Subscription, client: &Client) -> Vec<(String, String)> {
    // Where revisions were not wanted all the time, or not all of them, or are forgotten before they are told, or
    // something was told that nobody saw, there is no list to compare with.
    let whole = subscription.always_all
        && !stage.forgets_revisions
        && client.filter_changes == 0
        && subscription.wish.filter == Filter::Everything
        && subscription.wish.when == When::Always
        && subscription.whens.is_empty()
        && !client.unseen;
    let world = stage.shared.world();
    let documents = &world.resources[subscription.resource].documents;
    documents
        .iter()
        .filter(|_| whole)
        .filter_map(|(url, document)| {
            let told = client.pairs.get(url).map_or(&[][..], |pair| &pair.revisions);
            let what = holes(subscription, document, told)?;
            Some((url.clone(), what))
        })
        .collect()
}

fn holes(subscription: &Subscription, document: &Document, told: &[(i64, Action)]) -> Option<String> {
    let told: Vec<Step> =
        told.iter().map(|(revision, action)| (*revision, *action == Action::Delete)).collect();
    let accepted = document.said.iter().filter(|said| said.accepted.is_some());
    let changes: Vec<(Step, bool)> = accepted
        // What was accepted before the subscription was there is none of it.
        .filter(|said| said.accepted > Some(subscription.began))
        .map(|said| ((said.revision, said.content.is_none()), said.began > subscription.created))
        .collect();
    // A change at the moment of its creation may belong to it or not; with `start: beginning`, or after a replay, it
    // begins with the state that a document has when it is come to.
    let first = told.first().copied();
    let floating = subscription.wish.beginning || subscription.swept || subscription.perhaps_swept;
    let from = changes.iter().position(|(step, sure)| Some(*step) == first || *sure && !floating)?;
    let mut expected: Vec<Step> = Vec::new();
    for (step, _) in &changes[from..] {
        // The deletion of what the client does not have is not told.
        let lives = expected.last().is_some_and(|(_, deleted)| !deleted);
        if !step.1 || lives || expected.is_empty() && Some(*step) == first {
            expected.push(*step);
        }
    }
    // After a kill the deletion of what the client may have is told, though it does not have it.
    let mut heard: Vec<Step> = told.into_iter().filter(|step| !step.1 || expected.contains(step)).collect();
    heard.dedup();
    expected.dedup();
    // Before its first change after the creation it may have been told the state of then.
    let skip = heard.iter().position(|step| Some(step) == expected.first()).unwrap_or(0);
    (heard[skip..] != expected[..]).then(|| format!("it was told {heard:?} in place of {expected:?}"))
}
