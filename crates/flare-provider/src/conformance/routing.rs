//! Behaviours when urls pass from one resource to another: no document is written where it could not be found again.

use flare_model::document::{Outcome, Write};
use flare_model::ids::{LaneId, Seq};
use flare_model::pattern::Pattern;
use tokio::task::JoinSet;

use super::Factory;
use super::fixture::*;
use crate::catalog::{Capture, Entity, EntityKind, MOST_UNSEEN, NewEntity};
use crate::error::{Conflict, Result};

const MINE: &str = "http://h/users/me/1";

/// A resource that takes what is under `/users/me`, of lanes that its creator has seen so far.
fn mine(id: &str, seen: &[(LaneId, Seq)]) -> NewEntity {
    let pattern = Pattern::parse("http://h/users/me/{x}").expect("an endpoint");
    NewEntity { capture: Some(Capture { pattern, seen: seen.to_vec() }), ..resource(id, 1) }
}

fn routed_by(catalog: &Entity, write: Write) -> Write {
    Write { routed_by: catalog.version, ..write }
}

async fn commit(stage: &Stage, batch: Vec<Write>) -> Result<Vec<Outcome>> {
    let answers = stage.store.documents.commit(batch).await?;
    answers.into_iter().map(|answer| answer.map(|committed| committed.outcome)).collect()
}

/// Its items have an order, and the one that is refused may not be done after the others.
pub async fn a_batch_that_an_older_catalog_routed_is_refused_whole(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let all = stage.resource("all", 1).await;
    let lane = lane(&all, 0);
    let other = stage.resource("other", 1).await;
    let old = routed_by(&all, put(lane, "http://h/users/you/1", 1));
    let outcomes = commit(&stage, vec![old.clone()]).await.expect("the other one takes nothing from it");
    assert_eq!(outcomes, [Outcome::Created]);
    let mine = stage.create(mine("mine", &[(lane, Seq(1))])).await;
    let batch =
        || vec![routed_by(&mine, put(lane, "http://h/users/you/2", 1)), routed_by(&other, old.clone())];
    assert_eq!(conflict(commit(&stage, batch()).await), Conflict::Routing);
    assert_eq!(stage.scan(lane).await.len(), 1, "nothing of it was written");
    let again: Vec<Write> = batch().into_iter().map(|write| routed_by(&mine, write)).collect();
    assert_eq!(commit(&stage, again).await.expect("taken"), [Outcome::Created, Outcome::Unchanged]);
}

/// What was routed to it may be another's now.
pub async fn a_deleted_resource_has_writes_routed_again(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let all = stage.resource("all", 1).await;
    let mine = stage.create(mine("mine", &[(lane(&all, 0), Seq(0))])).await;
    let write = routed_by(&mine, put(lane(&mine, 0), MINE, 1));
    stage.delete(&mine).await;
    assert_eq!(conflict(commit(&stage, vec![write]).await), Conflict::Routing);
    let version = stage.store.catalog.version().await.expect("read");
    let again = Write { routed_by: version, ..put(lane(&all, 0), MINE, 1) };
    assert_eq!(commit(&stage, vec![again]).await.expect("taken"), [Outcome::Created]);
}

/// The commit looks at what came since; what the creator has seen is the creator's business.
pub async fn a_resource_takes_no_live_document_that_its_creator_has_not_seen(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let all = stage.resource("all", 2).await;
    let (first, second) = (lane(&all, 0), lane(&all, 1));
    stage.commit(vec![put(first, "http://h/users/you/1", 1), put(second, MINE, 1)]).await;
    let blind = stage.store.catalog.create(mine("mine", &[(first, Seq(0)), (second, Seq(0))])).await;
    assert_eq!(conflict(blind), Conflict::Captured(MINE.into()));
    assert_eq!(stage.store.catalog.get(EntityKind::Resource, "mine").await.expect("read"), None);
    // An update brings a document back among what was not seen.
    stage.commit(vec![put(second, MINE, 2)]).await;
    let late = stage.store.catalog.create(mine("mine", &[(first, Seq(1)), (second, Seq(1))])).await;
    assert_eq!(conflict(late), Conflict::Captured(MINE.into()));
    stage.create(mine("mine", &[(first, Seq(1)), (second, Seq(2))])).await;
}

/// It stays where it was, as long as the clients there need it, and is in nobody's way.
pub async fn a_tombstone_is_not_captured_and_its_document_begins_anew(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let all = stage.resource("all", 1).await;
    let old = lane(&all, 0);
    stage.commit(vec![put(old, MINE, 5), delete(old, MINE, None)]).await;
    let mine = stage.create(mine("mine", &[(old, Seq(0))])).await;
    let new = lane(&mine, 0);
    assert!(stage.document(old, MINE).await.row.deleted);
    assert_eq!(stage.commit(vec![put(new, MINE, 6)]).await, [Outcome::Created]);
    stage.delete(&mine).await;
    // Its former resource has it again, and knows of the delete.
    assert_eq!(stage.commit(vec![put(old, MINE, 5)]).await, [Outcome::Unchanged]);
    assert_eq!(stage.commit(vec![put(old, MINE, 7)]).await, [Outcome::Created]);
    assert_eq!(stage.document(old, MINE).await.row.before, Seq(2));
}

/// A commit does not wait for a long search inside it.
pub async fn too_much_unseen_is_looked_at_by_the_creator_first(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let old = lane(&stage.resource("all", 1).await, 0);
    let puts = (0..=MOST_UNSEEN).map(|n| put(old, &format!("http://h/users/you/{n}"), 1));
    stage.commit(puts.collect()).await;
    let refused = stage.store.catalog.create(mine("mine", &[(old, Seq(0))])).await;
    assert_eq!(conflict(refused), Conflict::Unseen);
    stage.create(mine("mine", &[(old, Seq(1))])).await;
}

/// Either the resource finds the document, or the document is routed again.
pub async fn a_document_and_the_resource_that_captures_it_are_never_both_accepted(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let mut won = [0, 0];
    for round in 0..40 {
        let all = stage.resource(&format!("all {round}"), 1).await;
        let old = lane(&all, 0);
        let mut tasks = JoinSet::new();
        for number in 0..4 {
            let documents = stage.store.documents.clone();
            let write = routed_by(&all, put(old, &format!("http://h/users/me/{number}"), 1));
            tasks.spawn(async move { documents.commit(vec![write]).await.map(|answers| answers.len()) });
        }
        let created = stage.store.catalog.create(mine(&format!("mine {round}"), &[(old, Seq(0))])).await;
        let written = tasks.join_all().await;
        let found = stage.scan(old).await.len();
        match created {
            Ok(created) => {
                assert_eq!(found, 0, "what was accepted is where nobody looks for it");
                written.into_iter().for_each(|refused| assert_eq!(conflict(refused), Conflict::Routing));
                stage.delete(&created).await;
                won[0] += 1;
            }
            refused => {
                let conflict = conflict(refused);
                let ours = |url: &str| url.starts_with("http://h/users/me/");
                assert!(matches!(&conflict, Conflict::Captured(url) if ours(url)), "{conflict}");
                assert_eq!(written.iter().filter(|written| written.is_ok()).count(), 4);
                assert_eq!(found, 4);
                won[1] += 1;
            }
        }
    }
    assert_eq!(won.iter().sum::<i32>(), 40);
}
