//! Behaviours under concurrency: calls from many tasks at once, and what holds whatever their order.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use flare_model::document::Outcome;
use flare_model::feed::Record;
use flare_model::ids::{FeedId, Ordinal, Seq};
use flare_model::revision::Revision;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::Factory;
use super::fixture::*;
use crate::catalog::{Entity, EntityKind, Start};
use crate::documents::ScanLane;
use crate::error::{Conflict, ErrorKind};
use crate::ledger::FeedWrite;

/// Runs both at the same time, each on a task of its own.
async fn both<A: Send + 'static, B: Send + 'static>(
    first: impl Future<Output = A> + Send + 'static,
    second: impl Future<Output = B> + Send + 'static,
) -> (A, B) {
    let (mut one, mut two) = (JoinSet::new(), JoinSet::new());
    one.spawn(first);
    two.spawn(second);
    let first = one.join_next().await.expect("it was spawned").expect("it does not panic");
    let second = two.join_next().await.expect("it was spawned").expect("it does not panic");
    (first, second)
}

/// Either the subscription finds no resource, or the resource finds a subscription.
pub async fn a_resource_is_never_deleted_under_a_new_subscription(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    for round in 0..30 {
        let (id, child) = (format!("r{round}"), format!("s{round}"));
        let resource = stage.resource(&id, 2).await;
        let creating = {
            let (catalog, new) = (stage.store.catalog.clone(), subscription(&child, &id));
            async move { catalog.create(new).await }
        };
        let deleting = {
            let (catalog, id) = (stage.store.catalog.clone(), id.clone());
            async move { catalog.delete(EntityKind::Resource, &id).await }
        };
        let (created, deleted) = if round % 2 == 0 {
            both(creating, deleting).await
        } else {
            let (deleted, created) = both(deleting, creating).await;
            (created, deleted)
        };
        let found = stage.store.catalog.get(EntityKind::Subscription, &child).await.expect("read");
        let lanes = stage.lane_state(lane(&resource, 1)).await;
        match created {
            Ok(subscribed) => {
                assert_eq!(conflict(deleted), Conflict::Children);
                assert_eq!(found, Some(subscribed));
                assert!(lanes.is_some(), "the subscription has its lanes");
            }
            refused => {
                assert_eq!(conflict(refused), Conflict::Parent);
                assert!(deleted.expect("nothing stood against it"));
                assert_eq!((found, lanes), (None, None));
            }
        }
    }
}

/// The others are told that what they saw is no more.
pub async fn one_of_many_replacements_wins(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let seen = stage.resource("users", 1).await;
    let mut tasks = JoinSet::new();
    for number in 0..16 {
        let (catalog, asked) =
            (stage.store.catalog.clone(), Entity { body: number.to_string(), ..seen.clone() });
        tasks.spawn(async move { catalog.replace(asked).await });
    }
    let mut winners = Vec::new();
    for answer in tasks.join_all().await {
        match answer {
            Ok(replaced) => winners.push(replaced.expect("it exists")),
            refused => assert_eq!(conflict(refused), Conflict::Version),
        }
    }
    let stored = stage.store.catalog.get(EntityKind::Resource, "users").await.expect("read");
    assert_eq!(winners, [stored.expect("it exists")]);
}

/// The others are told whose it is.
pub async fn one_of_many_creations_gets_the_key(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let mut tasks = JoinSet::new();
    for number in 0..16 {
        let catalog = stage.store.catalog.clone();
        let new = with_keys(resource(&format!("r{number}"), 1), &["key", &format!("own {number}")]);
        tasks.spawn(async move { catalog.create(new).await });
    }
    let (won, refused): (Vec<_>, Vec<_>) = tasks.join_all().await.into_iter().partition(Result::is_ok);
    let won: Vec<Entity> = won.into_iter().flatten().collect();
    assert_eq!(stage.store.catalog.list(EntityKind::Resource, 0, 99).await.expect("read"), won);
    assert_eq!((won.len(), refused.len()), (1, 15));
    for answer in refused {
        assert_eq!(conflict(answer), taken(&won[0].id));
    }
}

/// Each change has one seq, the witness hears them in that order, and every answer agrees with it.
pub async fn many_writers_leave_the_highest_revision_and_a_whole_log(factory: &dyn Factory) {
    const WRITERS: i64 = 8;
    const TURNS: i64 = 30;
    let stage = Stage::fresh(factory).await;
    let lane = lane(&stage.resource("users", 1).await, 0);
    let witness = Recorder::over(&stage.store);
    let together = Arc::new(Barrier::new(WRITERS as usize));
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        let (documents, together) = (stage.store.documents.clone(), together.clone());
        tasks.spawn(async move {
            together.wait().await;
            let mut changes = 0;
            for turn in 0..TURNS {
                let own = format!("http://h/{writer}");
                let batch = vec![put(lane, "http://h/all", turn * WRITERS + writer), put(lane, &own, turn)];
                for answer in documents.commit(batch).await.expect("taken") {
                    let outcome = answer.expect("the lane exists").outcome;
                    changes += usize::from(matches!(outcome, Outcome::Created | Outcome::Updated));
                }
            }
            changes
        });
    }
    let changes: usize = tasks.join_all().await.into_iter().sum();
    let shared = stage.document(lane, "http://h/all").await;
    assert_eq!(shared.revision, Revision::Integer(WRITERS * TURNS - 1));

    let heard = witness.heard(lane);
    let seqs: Vec<u64> = heard.iter().map(|document| document.row.seq.0).collect();
    assert_eq!(seqs, (1..=changes as u64).collect::<Vec<_>>(), "as many as were answered, without a gap");
    let revisions: Vec<_> =
        heard.iter().filter(|d| d.url == shared.url).map(|d| d.revision.clone()).collect();
    assert!(revisions.is_sorted_by(|earlier, later| earlier < later), "only newer ones won");
    let newest: BTreeMap<Seq, _> = heard
        .iter()
        .map(|d| (d.url.clone(), d))
        .collect::<BTreeMap<_, _>>()
        .into_values()
        .map(|d| (d.row.seq, d))
        .collect();
    assert!(stage.scan(lane).await.iter().eq(newest.into_values()), "the log is the newest of each document");
}

/// Documents move to the tail all the time, and no reader meets one twice, or not at all.
pub async fn a_page_is_one_snapshot(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let lane = lane(&stage.resource("users", 1).await, 0);
    let url = |n| format!("http://h/{n}");
    stage.commit((0..10).map(|n| put(lane, &url(n), 0)).collect()).await;
    let mut writer = JoinSet::new();
    let documents = stage.store.documents.clone();
    writer.spawn(async move {
        for revision in 1.. {
            documents.commit(vec![put(lane, &url(revision % 10), revision)]).await.expect("taken");
            tokio::task::yield_now().await;
        }
    });
    let scan = ScanLane { lane, after: Seq(0), upto: Seq(u64::MAX), rows: usize::MAX, bytes: usize::MAX };
    for _ in 0..40 {
        let page = stage.store.documents.scan(scan).await.expect("read");
        let ordinals: BTreeSet<Ordinal> =
            page.documents.iter().map(|document| document.row.ordinal).collect();
        assert_eq!((page.documents.len(), ordinals.len()), (10, 10));
        assert_eq!(page.documents.last().map(|document| document.row.seq), Some(page.head));
        let asked: Vec<Ordinal> = ordinals.into_iter().collect();
        let (found, head) = stage.store.documents.fetch(lane, &asked).await.expect("read");
        let newest = found.iter().flatten().map(|document| document.row.seq).max();
        assert_eq!(newest, Some(head), "the head belongs to what was fetched with it");
    }
    writer.shutdown().await;
}

/// Its cursor lies where the lane was at some moment of its creation.
pub async fn a_new_subscription_misses_no_change(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    let lane = lane(&stage.resource("users", 1).await, 0);
    let answered = Arc::new(AtomicU64::new(0));
    let mut writer = JoinSet::new();
    {
        let (documents, answered) = (stage.store.documents.clone(), answered.clone());
        writer.spawn(async move {
            for revision in 1.. {
                documents.commit(vec![put(lane, "http://h/1", revision)]).await.expect("taken");
                answered.store(revision as u64, SeqCst);
                tokio::task::yield_now().await;
            }
        });
    }
    for number in 0..20 {
        let start = if number % 2 == 0 { Start::Now } else { Start::Beginning };
        let before = answered.load(SeqCst);
        let subscription = stage.subscription(&format!("s{number}"), "users", start).await;
        let after = stage.lane_state(lane).await.expect("it exists").head;
        let saved = stage.saved(feed(&subscription, 0)).await;
        assert!(Seq(before) <= saved.cursor && saved.cursor <= after, "{before} {} {after}", saved.cursor);
        assert_eq!(saved.issued, saved.cursor);
        let swept = saved.sweep.map_or(Seq(0), |sweep| sweep.end);
        assert_eq!(swept, if start == Start::Now { Seq(0) } else { saved.cursor });
    }
    writer.shutdown().await;
}

/// Opening raises the epoch and then reads: the last record that was answered is the one that is read.
pub async fn a_new_owner_sees_all_that_the_old_one_was_told_is_written(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    stage.resource("users", 1).await;
    let feed = feed(&stage.subscription("s", "users", Start::Now).await, 0);
    let record = |cursor| Record { cursor: Seq(cursor), held: ordinals(&[cursor]), ..Record::default() };
    for round in 0..12 {
        let (old, new) = (stage.own(feed).await, stage.epoch().await);
        stage.write(feed, old, record(0)).await;
        let ledger = stage.store.ledger.clone();
        let writing = async move {
            for cursor in 1..10_000 {
                let write = vec![FeedWrite { feed, epoch: old, record: record(cursor) }];
                match ledger.write(write).await.expect("taken").pop().expect("an answer per record") {
                    // An engine that never waits would keep the opener from its turn.
                    Ok(()) => tokio::task::yield_now().await,
                    Err(error) if error.kind == ErrorKind::Fenced => return cursor - 1,
                    Err(error) => panic!("neither written nor fenced: {error}"),
                }
            }
            panic!("the other one opened the feed, and this one was never fenced")
        };
        let ledger = stage.store.ledger.clone();
        let opening = async move {
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            ledger.open(&[feed], new).await.expect("no higher epoch").pop().expect("it exists")
        };
        let (last, opened) = both(writing, opening).await;
        assert_eq!(opened.saved.cursor, Seq(last));
        assert!(opened.saved.held.contains(last), "a record is there whole");
        assert_eq!(stage.open(feed, new).await.saved, opened.saved, "nothing was written after");
    }
}

/// Feeds share commits, and nothing else.
pub async fn many_owners_write_their_feeds_at_once(factory: &dyn Factory) {
    let stage = Stage::fresh(factory).await;
    stage.resource("users", 1).await;
    let epoch = stage.epoch().await;
    let mut feeds: Vec<FeedId> = Vec::new();
    for number in 0..12 {
        feeds.push(feed(&stage.subscription(&format!("s{number}"), "users", Start::Now).await, 0));
    }
    stage.store.ledger.open(&feeds, epoch).await.expect("opened");
    let mut tasks = JoinSet::new();
    for feed in feeds.clone() {
        let ledger = stage.store.ledger.clone();
        tasks.spawn(async move {
            for turn in 0..20 {
                let held = ordinals(&[turn * 100 + feed.subscription.0]);
                let record = Record { cursor: Seq(turn), held, ..Record::default() };
                let answer =
                    ledger.write(vec![FeedWrite { feed, epoch, record }]).await.expect("taken").pop();
                answer.expect("an answer per record").expect("written");
            }
        });
    }
    tasks.join_all().await;
    for feed in feeds {
        let saved = stage.saved(feed).await;
        assert_eq!(saved.cursor, Seq(19));
        assert_eq!(saved.held, (0..20).map(|turn| turn * 100 + feed.subscription.0).collect());
    }
}
