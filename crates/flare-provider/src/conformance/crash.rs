//! Behaviours under a crash: whatever was answered is there, and counting goes on where it was.

use std::collections::BTreeMap;
use std::sync::Arc;

use flare_model::feed::{Record, Standing, State};
use flare_model::ids::{FeedId, Ordinal, Seq};
use flare_model::revision::Revision;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::Factory;
use super::dump::dump;
use super::fixture::*;
use crate::catalog::Start;
use crate::ledger::FeedWrite;

/// Entities, documents, tombstones, feeds: the store reads as it did before.
pub async fn everything_answered_is_there_after_a_crash(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let users = stage.create(with_keys(resource("users", 2), &["one", "two"])).await;
    stage.resource("orders", 1).await;
    for round in 0..4 {
        let batch =
            (0..30).map(|n| put(lane(&users, n % 2), &format!("http://h/{n}"), round * i64::from(n % 3)));
        stage.commit(batch.collect()).await;
    }
    stage.commit(vec![delete(lane(&users, 0), "http://h/4", None)]).await;
    for start in [Start::Now, Start::Beginning] {
        let subscription = stage.subscription(&format!("{start:?}"), "users", start).await;
        let feed = feed(&subscription, 1);
        let epoch = stage.own(feed).await;
        let state = State::Waiting { due: NOW };
        let standing =
            Standing { ordinal: Ordinal(3), seq: Seq(4), doubt: true, state, replay: 0, trouble: None };
        let (held, standings) = (ordinals(&[1, 2]), vec![standing]);
        stage.write(feed, epoch, Record { cursor: Seq(9), held, standings, ..Record::default() }).await;
    }
    let before = dump(&stage.store).await;
    let stage = stage.crash().await;
    assert_eq!(dump(&stage.store).await, before);
    let stage = stage.crash().await;
    assert_eq!(dump(&stage.store).await, before, "opening alone changes nothing");
}

/// The crash falls among the commits of several writers: an answer that got out is true.
pub async fn answers_given_during_a_crash_hold(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let lane = lane(&stage.resource("users", 1).await, 0);
    // Bound: what is answered before the crash.
    let (answers, mut answered) = mpsc::unbounded_channel();
    let mut writers = JoinSet::new();
    for writer in 0..4 {
        let (documents, answers) = (stage.store.documents.clone(), answers.clone());
        writers.spawn(async move {
            for revision in 0.. {
                let url: Arc<str> = Arc::from(format!("http://h/{writer}/{}", revision % 5));
                let Ok(outcomes) = documents.commit(vec![put(lane, &url, revision)]).await else { return };
                assert!(outcomes.iter().all(Result::is_ok), "the lane is there to the end");
                if answers.send((url, revision)).is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        });
    }
    drop(answers);
    let mut newest = BTreeMap::new();
    for _ in 0..100 {
        let (url, revision) = answered.recv().await.expect("writers go on until the crash");
        newest.insert(url, revision);
    }
    let stage = stage.crash().await;
    let head = stage.lane_state(lane).await.expect("it exists").head;
    writers.shutdown().await;
    while let Some((url, revision)) = answered.recv().await {
        newest.insert(url, revision);
    }
    for (url, revision) in newest {
        let document = stage.document(lane, &url).await;
        assert!(document.revision >= Revision::Integer(revision), "{url} was answered at {revision}");
    }
    let documents = stage.scan(lane).await;
    assert_eq!(documents.last().map(|document| document.row.seq), Some(head), "the dead write nothing");
    let next = "http://h/next";
    stage.commit(vec![put(lane, next, 1)]).await;
    let row = stage.document(lane, next).await.row;
    assert_eq!((row.seq.0, row.ordinal.0), (head.0 + 1, documents.len() as u64), "counting goes on");
}

/// And a record that was not answered is there whole or not at all.
pub async fn records_answered_during_a_crash_hold(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    stage.resource("users", 4).await;
    let subscription = stage.subscription("s", "users", Start::Now).await;
    let epoch = stage.epoch().await;
    let feeds: Vec<FeedId> = (0..4).map(|lane| feed(&subscription, lane)).collect();
    stage.store.ledger.open(&feeds, epoch).await.expect("opened");
    // Bound: what is answered before the crash.
    let (answers, mut answered) = mpsc::unbounded_channel();
    let mut owners = JoinSet::new();
    for feed in feeds.clone() {
        let (ledger, answers) = (stage.store.ledger.clone(), answers.clone());
        owners.spawn(async move {
            for cursor in 1.. {
                let record = Record { cursor: Seq(cursor), held: ordinals(&[cursor]), ..Record::default() };
                let Ok(written) = ledger.write(vec![FeedWrite { feed, epoch, record }]).await else { return };
                assert!(written.iter().all(Result::is_ok), "nobody fences it");
                if answers.send((feed, cursor)).is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        });
    }
    drop(answers);
    let mut newest = BTreeMap::new();
    for _ in 0..100 {
        let (feed, cursor) = answered.recv().await.expect("owners go on until the crash");
        newest.insert(feed, cursor);
    }
    let stage = stage.crash().await;
    owners.shutdown().await;
    while let Some((feed, cursor)) = answered.recv().await {
        newest.insert(feed, cursor);
    }
    for feed in feeds {
        let saved = stage.saved(feed).await;
        assert!(saved.cursor.0 >= newest.get(&feed).copied().unwrap_or(0));
        assert_eq!(saved.held, (1..=saved.cursor.0).collect(), "cursor and bits move together");
    }
}

/// Nothing was lost, so nothing is strange.
pub async fn a_crash_keeps_the_incarnation(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    stage.resource("users", 1).await;
    let feed = feed(&stage.subscription("s", "users", Start::Now).await, 0);
    let incarnation = stage.store.documents.incarnation().await.expect("answered");
    let stage = stage.crash().await;
    assert_eq!(stage.store.documents.incarnation().await.expect("answered"), incarnation);
    assert!(!stage.saved(feed).await.strange);
}

/// The witness of the next life hears of what comes after, and of nothing before.
pub async fn counters_go_on_after_a_crash(factory: &dyn Factory) {
    let mut stage = Stage::fresh(factory).await;
    let lane = lane(&stage.resource("users", 1).await, 0);
    for life in 0..4_u64 {
        let witness = Recorder::over(&stage.store);
        let batch = (0..3).map(|n| put(lane, &format!("http://h/{life}/{n}"), 1));
        stage.commit(batch.collect()).await;
        let heard: Vec<(u64, u64)> =
            witness.heard(lane).iter().map(|d| (d.row.ordinal.0, d.row.seq.0)).collect();
        let expected: Vec<(u64, u64)> = (life * 3..life * 3 + 3).map(|n| (n, n + 1)).collect();
        assert_eq!(heard, expected);
        stage = stage.crash().await;
    }
}
