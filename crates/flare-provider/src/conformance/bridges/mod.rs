//! Behaviours of consumers and producers: to an engine they are resources and subscriptions by other names.

use flare_model::document::Outcome;
use flare_model::ids::Seq;

use super::Factory;
use super::access::{account, of};
use super::fixture::*;
use crate::catalog::{EntityKind, NewEntity, Start};
use crate::error::Conflict;

pub(super) fn consumer(id: &str, lanes: u16) -> NewEntity {
    NewEntity { kind: EntityKind::Consumer, ..resource(id, lanes) }
}

fn producer(id: &str, parent: &str) -> NewEntity {
    NewEntity { kind: EntityKind::Producer, ..subscription(id, parent) }
}

/// Its documents are named as it likes, and go with it.
pub async fn a_consumer_has_lanes_and_documents_like_a_resource(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let orders = stage.create(consumer("con_1", 2)).await;
    assert_eq!(orders.lanes, 2);
    let place = lane(&orders, 1);
    assert_eq!(stage.commit(vec![put(place, "a name, no url", 1)]).await, [Outcome::Created]);
    let stage = stage.crash().await;
    assert_eq!(stage.document(place, "a name, no url").await.row.seq, Seq(1));
    let catalog = stage.store.catalog.clone();
    assert_eq!(catalog.list(EntityKind::Consumer, 0, 10).await.expect("read"), std::slice::from_ref(&orders));
    assert_eq!(catalog.list(EntityKind::Resource, 0, 10).await.expect("read"), []);
    stage.delete(&orders).await;
    assert!(stage.lane_state(place).await.is_none(), "its lanes are gone with it");
    let late = stage.store.documents.commit(vec![put(place, "a name, no url", 2)]).await;
    let late = late.expect("the others of a batch are not refused").pop().expect("an answer per write");
    assert_eq!(conflict(late), Conflict::Lane);
}

/// They begin where its consumer's lanes are, and one that wants every revision has them kept.
pub async fn a_producer_has_feeds_like_a_subscription(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    assert_eq!(conflict(stage.store.catalog.create(producer("prd_1", "con_1")).await), Conflict::Parent);
    let users = stage.resource("con_1", 1).await;
    assert_eq!(
        conflict(stage.store.catalog.create(producer("prd_1", "con_1")).await),
        Conflict::Parent,
        "a resource is no consumer"
    );
    stage.delete(&users).await;
    let orders = stage.create(consumer("con_1", 3)).await;
    let place = lane(&orders, 0);
    stage.commit(vec![put(place, "one", 1)]).await;
    let first = stage.create(NewEntity { start: Start::Beginning, ..producer("prd_1", "con_1") }).await;
    assert_eq!(first.lanes, 3, "as many as its consumer has");
    let saved = stage.saved(feed(&first, 0)).await;
    assert_eq!(saved.cursor, Seq(1));
    assert!(saved.sweep.is_some(), "it begins with what is there");
    let every = stage.create(NewEntity { history: true, ..producer("prd_2", "con_1") }).await;
    stage.commit(vec![put(place, "one", 2)]).await;
    stage.commit(vec![put(place, "one", 3)]).await;
    assert_eq!(stage.lane_state(place).await.expect("a lane").revisions, 2);
    let nobody = flare_model::ids::SubscriptionNumber(0);
    let needs = stage.store.ledger.needs(place, nobody, 10).await.expect("read");
    let found: Vec<_> = needs.iter().map(|needs| needs.feed).collect();
    assert_eq!(found, [feed(&first, 0), feed(&every, 0)], "a sweeper asks them too");
    stage.delete(&every).await;
    stage.commit(vec![put(place, "one", 4)]).await;
    assert_eq!(stage.lane_state(place).await.expect("a lane").revisions, 2, "nobody wants more of them");
    let gone = stage.store.ledger.open(&[feed(&every, 0)], stage.epoch().await).await.expect("read");
    assert_eq!(gone.len(), 0);
}

/// Lanes and feeds go by number alone.
pub async fn consumers_and_resources_never_share_a_number(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let mut numbers = Vec::new();
    for turn in 0..3 {
        numbers.push(stage.create(resource(&format!("r{turn}"), 1)).await.number);
        numbers.push(stage.create(consumer(&format!("c{turn}"), 1)).await.number);
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let mut numbers = Vec::new();
    for turn in 0..3 {
        numbers.push(stage.create(subscription(&format!("s{turn}"), "r0")).await.number);
        numbers.push(stage.create(producer(&format!("p{turn}"), "c0")).await.number);
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

/// Like a resource with subscriptions.
pub async fn a_consumer_with_producers_stays_and_keeps_its_account(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let catalog = stage.store.catalog.clone();
    let acme = stage.create(account("acme")).await;
    let orders = stage.create(of("acme", consumer("con_1", 1))).await;
    let target = stage.create(producer("prd_1", "con_1")).await;
    assert_eq!(conflict(catalog.delete(EntityKind::Consumer, "con_1").await), Conflict::Children);
    stage.delete(&target).await;
    assert_eq!(conflict(catalog.delete(EntityKind::Account, "acme").await), Conflict::Children);
    stage.delete(&orders).await;
    stage.delete(&acme).await;
}
