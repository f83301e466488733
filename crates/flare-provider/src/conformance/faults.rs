//! Behaviours of an engine whose callers lose answers: what is repeated is not done twice.

use bytes::Bytes;
use flare_model::document::{Outcome, Write};
use flare_model::feed::Record;
use flare_model::ids::Seq;

use super::Factory;
use super::dump::dump;
use super::fixture::*;
use crate::Store;
use crate::catalog::{EntityKind, Start};
use crate::documents::ScanLane;
use crate::error::ErrorKind::Unavailable;
use crate::faulty::{Fault, Faulty, Odds, Plan};
use crate::ledger::FeedWrite;
use crate::memory::Memory;

/// A client of Flare that got no answer sends its PUT again.
pub async fn a_commit_repeated_after_a_lost_answer_changes_nothing(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let lane = lane(&stage.resource("users", 1).await, 0);
    let plan = Plan::quiet();
    let documents = Faulty::wrap(stage.store.clone(), plan.clone()).documents;
    let batch = vec![put(lane, "http://h/1", 1), delete(lane, "http://h/2", Some(1))];
    plan.once("documents.commit", Fault::After(Unavailable));
    assert_eq!(documents.commit(batch.clone()).await.expect_err("planned").kind, Unavailable);
    let before = stage.scan(lane).await;
    let outcomes = documents.commit(batch).await.expect("taken").into_iter();
    let outcomes: Vec<Outcome> = outcomes.map(|answer| answer.expect("the lane exists").outcome).collect();
    assert_eq!(outcomes, [Outcome::Unchanged, Outcome::Absent]);
    assert_eq!(stage.scan(lane).await, before);
}

/// So the caller can tell that it was itself.
pub async fn a_creation_repeated_after_a_lost_answer_names_itself(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let plan = Plan::quiet();
    let catalog = Faulty::wrap(stage.store.clone(), plan.clone()).catalog;
    plan.once("catalog.create", Fault::Before(Unavailable));
    plan.once("catalog.create", Fault::After(Unavailable));
    let new = with_keys(resource("users", 1), &["key"]);
    assert!(catalog.create(new.clone()).await.is_err());
    assert_eq!(catalog.get(EntityKind::Resource, "users").await.expect("read"), None);
    assert!(catalog.create(new.clone()).await.is_err());
    assert_eq!(conflict(catalog.create(new).await), taken("users"));
}

/// The owner of a feed writes a record until it is answered.
pub async fn a_record_repeated_after_a_lost_answer_is_the_same(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    stage.resource("users", 1).await;
    let feed = feed(&stage.subscription("s", "users", Start::Now).await, 0);
    let plan = Plan::quiet();
    let ledger = Faulty::wrap(stage.store.clone(), plan.clone()).ledger;
    let epoch = stage.epoch().await;
    plan.once("ledger.open", Fault::After(Unavailable));
    assert!(ledger.open(&[feed], epoch).await.is_err());
    assert_eq!(ledger.open(&[feed], epoch).await.expect("the same epoch").len(), 1);
    let record =
        Record { cursor: Seq(4), held: ordinals(&[1]), dropped: ordinals(&[2]), ..Record::default() };
    let write = vec![FeedWrite { feed, epoch, record }];
    plan.once("ledger.write", Fault::After(Unavailable));
    assert!(ledger.write(write.clone()).await.is_err());
    let once = stage.open(feed, epoch).await;
    ledger.write(write).await.expect("taken").pop().expect("an answer").expect("written");
    assert_eq!(stage.open(feed, epoch).await, once);
}

/// The caller's task may be dropped at any moment, the commit not.
pub async fn a_cancelled_commit_is_there_whole_or_not_at_all(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let lane = lane(&stage.resource("users", 1).await, 0);
    let witness = Recorder::over(&stage.store);
    let plan = Plan::quiet();
    let documents = Faulty::wrap(stage.store.clone(), plan.clone()).documents;
    plan.always("documents.commit", Fault::Cancelled(Unavailable));
    for turn in 0..50 {
        let content = Bytes::from(vec![b'x'; 1_000]);
        let batch = (0..5).map(|n| put_content(lane, &format!("http://h/{turn}/{n}"), 1, content.clone()));
        assert!(documents.commit(batch.collect()).await.is_err());
        let all = ScanLane { lane, after: Seq(0), upto: Seq(u64::MAX), rows: usize::MAX, bytes: usize::MAX };
        let page = stage.store.documents.scan(all).await.expect("read");
        assert_eq!(page.documents.len() % 5, 0, "a snapshot has each batch or none of it");
        assert_eq!(page.head.0, page.documents.len() as u64);
    }
    plan.heal();
    documents.commit(vec![put(lane, "http://h/last", 1)]).await.expect("taken");
    let heard: Vec<u64> = witness.heard(lane).iter().map(|document| document.row.seq.0).collect();
    assert_eq!(heard, (1..=heard.len() as u64).collect::<Vec<_>>(), "what was written was heard");
}

/// Commits and records through many faults, against the same ones through none.
pub async fn callers_that_repeat_until_answered_end_where_memory_does(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let faults = vec![Fault::Before(Unavailable), Fault::After(Unavailable)];
    let plan = Plan::seeded(7, Odds { percent: 40, faults });
    work(&Faulty::wrap(stage.store.clone(), plan.clone()), &stage.store).await;
    assert!(plan.met("documents.commit") > 10 && plan.met("ledger.write") > 10, "faults were met");
    let oracle = Memory::new().store();
    work(&oracle, &oracle).await;
    let stage = stage.crash().await;
    assert_eq!(dump(&stage.store).await, dump(&oracle).await);
}

/// Does the same in every store, through `shaky`; entities are made through `sound`.
async fn work(shaky: &Store, sound: &Store) {
    let resource = sound.catalog.create(resource("users", 1)).await.expect("created");
    let subscription = sound.catalog.create(subscription("s", "users")).await.expect("created");
    let (lane, feed) = (lane(&resource, 0), feed(&subscription, 0));
    let epoch = sound.ledger.next_epoch().await.expect("given");
    sound.ledger.open(&[feed], epoch).await.expect("opened");
    for turn in 0..60_i64 {
        let url = format!("http://h/{}", turn * 5 % 7);
        let write = if turn % 4 == 3 { delete(lane, &url, Some(turn)) } else { put(lane, &url, turn) };
        let batch: Vec<Write> = vec![write, put(lane, "http://h/all", turn / 2)];
        until_answered(async || shaky.documents.commit(batch.clone()).await.is_ok()).await;
        let record = Record {
            cursor: Seq(turn as u64),
            held: ordinals(&[turn as u64 % 11]),
            dropped: ordinals(&[(turn as u64 + 5) % 11]),
            ..Record::default()
        };
        let write = vec![FeedWrite { feed, epoch, record }];
        until_answered(async || shaky.ledger.write(write.clone()).await.is_ok()).await;
    }
}

async fn until_answered(call: impl AsyncFn() -> bool) {
    for _ in 0..100 {
        if call().await {
            return;
        }
    }
    panic!("a plan of four faults in ten does not strike a hundred times in a row");
}
