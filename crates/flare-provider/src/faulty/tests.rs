//! Plans do what they say, and only that.

use std::time::Duration;

use super::{Fault, Faulty, Odds, Plan};
use crate::Store;
use crate::catalog::EntityKind;
use crate::conformance::fixture::resource;
use crate::error::ErrorKind::{Internal, Unavailable};
use crate::memory::Memory;

fn faulty() -> (Store, Plan) {
    let plan = Plan::quiet();
    (Faulty::wrap(Memory::new().store(), plan.clone()), plan)
}

async fn exists(store: &Store, id: &str) -> bool {
    store.catalog.get(EntityKind::Resource, id).await.expect("read").is_some()
}

#[tokio::test]
async fn a_fault_before_does_nothing_and_one_after_hides_the_answer() {
    let (store, plan) = faulty();
    plan.once("catalog.create", Fault::Before(Unavailable));
    plan.once("catalog.create", Fault::After(Internal));
    let error = store.catalog.create(resource("users", 1)).await.expect_err("planned");
    assert_eq!((error.kind, error.operation), (Unavailable, "catalog.create"));
    assert!(!exists(&store, "users").await);
    let error = store.catalog.create(resource("users", 1)).await.expect_err("planned");
    assert_eq!(error.kind, Internal);
    assert!(exists(&store, "users").await);
    store.catalog.create(resource("orders", 1)).await.expect("nothing is planned any more");
    assert_eq!(plan.met("catalog.create"), 2);
}

#[tokio::test]
async fn a_standing_fault_lasts_until_it_is_healed() {
    let (store, plan) = faulty();
    plan.always("ledger.next_epoch", Fault::Before(Unavailable));
    for _ in 0..3 {
        assert!(store.ledger.next_epoch().await.is_err());
    }
    assert!(store.catalog.version().await.is_ok(), "other operations go on");
    plan.heal();
    assert_eq!(store.ledger.next_epoch().await.expect("healed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_call_is_done_later() {
    let (store, plan) = faulty();
    plan.once("catalog.create", Fault::Delayed(Duration::from_secs(5)));
    let creating = store.catalog.create(resource("users", 1));
    assert!(tokio::time::timeout(Duration::from_secs(4), creating).await.is_err(), "not before its time");
    assert!(!exists(&store, "users").await);
    plan.once("catalog.create", Fault::Delayed(Duration::from_secs(5)));
    store.catalog.create(resource("users", 1)).await.expect("created in the end");
}

#[tokio::test(start_paused = true)]
async fn a_lost_call_is_done_in_its_time_and_a_plan_can_be_drawn_by_the_test() {
    let (before, after) = (Duration::from_secs(2), Duration::from_secs(3));
    let plan = Plan::drawn_by(move |operation| match operation {
        "catalog.create" => Some(Fault::Lost { before, after, kind: Unavailable }),
        "ledger.next_epoch" => Some(Fault::Slow { before, after }),
        _ => None,
    });
    let store = Faulty::wrap(Memory::new().store(), plan);
    let mut creating = store.catalog.create(resource("users", 1));
    assert!(tokio::time::timeout(Duration::from_secs(4), &mut creating).await.is_err());
    assert!(exists(&store, "users").await, "it is done, and not answered yet");
    assert!(creating.await.is_err());
    let slow = tokio::time::timeout(Duration::from_secs(4), store.ledger.next_epoch());
    assert!(slow.await.is_err(), "five seconds in all");
}

#[tokio::test]
async fn a_cancelled_call_was_begun() {
    let (store, plan) = faulty();
    plan.once("catalog.create", Fault::Cancelled(Unavailable));
    assert!(store.catalog.create(resource("users", 1)).await.is_err());
    assert!(exists(&store, "users").await, "memory is done as soon as it is begun");
}

#[tokio::test]
async fn the_same_seed_strikes_the_same_calls() {
    let odds = Odds { percent: 30, faults: vec![Fault::Before(Unavailable), Fault::After(Unavailable)] };
    let strikes = async |seed| {
        let store = Faulty::wrap(Memory::new().store(), Plan::seeded(seed, odds.clone()));
        let mut strikes = Vec::new();
        for _ in 0..200 {
            strikes.push(store.ledger.next_epoch().await.is_err());
        }
        strikes
    };
    let first = strikes(1).await;
    assert_eq!(first, strikes(1).await);
    assert_ne!(first, strikes(2).await);
    assert!((30..90).contains(&first.iter().filter(|struck| **struck).count()));
}

#[tokio::test]
#[should_panic(expected = "no operation is called documents.put")]
async fn a_plan_for_an_unknown_operation_is_a_mistake() {
    Plan::quiet().once("documents.put", Fault::Before(Unavailable));
}
