//! Behaviours of two processes that are alive at the same time on one store. An engine that is for one process at a time has
//! nothing to show here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use flare_model::document::Outcome;
use flare_model::feed::Record;
use flare_model::ids::{Ordinal, Seq};
use flare_model::revision::Revision;
use tokio::task::JoinSet;

use super::Factory;
use super::fixture::*;
use crate::catalog::{Capture, Entity, EntityKind, NewEntity, Start};
use crate::documents::ScanLane;
use crate::error::Conflict;

/// Two processes on one store; `None` where the engine is for one.
async fn two(factory: &dyn Factory) -> Option<(Stage, Stage)> {
    let one = Stage::fresh(factory).await;
    let other = one.join().await?;
    Some((one, other))
}

/// Whoever has read up to a head has read everything up to it: nothing appears below it later.
pub async fn seqs_become_visible_in_order_whoever_commits(factory: &dyn Factory) {
    const WRITES: i64 = 60;
    let Some((one, other)) = two(factory).await else { return };
    let lane = lane(&one.resource("users", 1).await, 0);
    let mut writers = JoinSet::new();
    for (process, stage) in [&one, &other].into_iter().enumerate() {
        for writer in 0..2 {
            let documents = stage.store.documents.clone();
            writers.spawn(async move {
                for number in 0..WRITES {
                    let url = format!("http://h/{process}/{writer}/{number}");
                    documents.commit(vec![put(lane, &url, 1)]).await.expect("the log takes it");
                }
            });
        }
    }
    let written = Arc::new(AtomicBool::new(false));
    let (reader, done) = (other.store.documents.clone(), written.clone());
    let reading = JoinSet::from_iter([async move {
        let (mut after, mut met) = (Seq(0), Vec::new());
        loop {
            let last = done.load(SeqCst);
            let scan = ScanLane { lane, after, upto: Seq(u64::MAX), rows: 1000, bytes: 1 << 20 };
            let page = reader.scan(scan).await.expect("the log is read");
            met.extend(page.documents.iter().map(|document| document.row.seq.0));
            after = page.upto;
            if last {
                return met;
            }
            tokio::task::yield_now().await;
        }
    }]);
    writers.join_all().await;
    written.store(true, SeqCst);
    let met = reading.join_all().await.remove(0);
    assert_eq!(met, (1..=4 * WRITES as u64).collect::<Vec<_>>(), "each once, and in order");
    let ordinals: Vec<u64> = one.scan(lane).await.iter().map(|document| document.row.ordinal.0).collect();
    assert_eq!(ordinals, (0..4 * WRITES as u64).collect::<Vec<_>>());
}

/// The rule is applied to what is stored, not to what a process remembers.
pub async fn a_newer_revision_wins_whoever_writes_it(factory: &dyn Factory) {
    let Some((one, other)) = two(factory).await else { return };
    let lane = lane(&one.resource("users", 1).await, 0);
    let url = "http://h/1";
    assert_eq!(one.commit(vec![put(lane, url, 5)]).await, [Outcome::Created]);
    assert_eq!(other.commit(vec![put(lane, url, 5)]).await, [Outcome::Unchanged]);
    assert_eq!(other.commit(vec![put(lane, url, 4)]).await, [Outcome::Stale]);
    assert_eq!(other.commit(vec![put(lane, url, 7)]).await, [Outcome::Updated]);
    assert_eq!(one.commit(vec![put(lane, url, 6)]).await, [Outcome::Stale]);
    assert_eq!(one.commit(vec![delete(lane, url, Some(8))]).await, [Outcome::Deleted]);
    assert_eq!(other.commit(vec![put(lane, url, 8)]).await, [Outcome::Unchanged]);
    let document = other.document(lane, url).await;
    assert_eq!((document.revision, document.row.seq), (Revision::Integer(8), Seq(3)));
    assert!(document.row.deleted);
}

/// In order, each once, before the writer is answered; what others write it finds in the log.
pub async fn a_witness_hears_of_its_own_process_only(factory: &dyn Factory) {
    let Some((one, other)) = two(factory).await else { return };
    let lane = lane(&one.resource("users", 1).await, 0);
    let (mine, theirs) = (Recorder::over(&one.store), Recorder::over(&other.store));
    for number in 0..6 {
        let stage = if number % 2 == 0 { &one } else { &other };
        stage.commit(vec![put(lane, &format!("http://h/{number}"), 1)]).await;
    }
    let seqs = |recorder: &Recorder| -> Vec<u64> {
        recorder.heard(lane).iter().map(|document| document.row.seq.0).collect()
    };
    assert_eq!((seqs(&mine), seqs(&theirs)), (vec![1, 3, 5], vec![2, 4, 6]));
}

/// From the moment at which another process has opened it, nothing of the former owner is written.
pub async fn a_feed_opened_by_another_process_is_fenced(factory: &dyn Factory) {
    let Some((one, other)) = two(factory).await else { return };
    one.resource("users", 1).await;
    let feed = feed(&one.subscription("s", "users", Start::Now).await, 0);
    let old = one.own(feed).await;
    one.write(feed, old, Record { cursor: Seq(3), held: ordinals(&[1]), ..Record::default() }).await;
    let new = other.own(feed).await;
    assert!(new > old);
    let late = Record { cursor: Seq(9), held: ordinals(&[2]), ..Record::default() };
    assert_fenced(one.try_write(feed, old, late.clone()).await);
    assert_fenced(one.store.ledger.open(&[feed], old).await);
    other.write(feed, new, Record { cursor: Seq(4), held: ordinals(&[5]), ..Record::default() }).await;
    assert_fenced(one.try_write(feed, old, late).await);
    let saved = one.saved(feed).await;
    assert_eq!((saved.cursor, saved.held.iter().collect::<Vec<_>>()), (Seq(4), vec![1, 5]));
    assert_eq!(one.standing(feed, Ordinal(2).0).await, None);
}

/// Two that ask at once get two.
pub async fn epochs_are_given_out_once_whoever_asks(factory: &dyn Factory) {
    let Some((one, other)) = two(factory).await else { return };
    let mut asking = JoinSet::new();
    for stage in [&one, &other] {
        let ledger = stage.store.ledger.clone();
        asking.spawn(async move {
            let mut given = Vec::new();
            for _ in 0..20 {
                given.push(ledger.next_epoch().await.expect("the ledger answers"));
            }
            assert!(given.is_sorted(), "{given:?}");
            given
        });
    }
    let mut all: Vec<u64> = asking.join_all().await.concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 40);
}

/// The other is told whose it is, and each sees it at once.
pub async fn one_of_two_processes_creates_what_both_want_to(factory: &dyn Factory) {
    let Some((one, other)) = two(factory).await else { return };
    for round in 0..5 {
        let key = format!("key {round}");
        let new = |id: &str| with_keys(resource(&format!("{id}{round}"), 2), &[&key]);
        let (first, second) =
            tokio::join!(one.store.catalog.create(new("a")), other.store.catalog.create(new("b")));
        let (won, refused) = match (first, second) {
            (Ok(won), refused) => (won, refused),
            (refused, won) => (won.expect("one of them wins"), refused),
        };
        assert_eq!(conflict(refused), taken(&won.id));
        for stage in [&one, &other] {
            let found = stage.store.catalog.get(EntityKind::Resource, &won.id).await.expect("read");
            assert_eq!(found.as_ref(), Some(&won));
            assert!(stage.lane_state(lane(&won, 1)).await.is_some());
        }
    }
}

/// Nobody overwrites what he has not seen.
pub async fn a_replacement_by_another_process_is_a_conflict(factory: &dyn Factory) {
    let Some((one, other)) = two(factory).await else { return };
    let seen = one.resource("users", 1).await;
    let asked = Entity { body: "theirs".to_owned(), ..seen.clone() };
    let theirs = other.store.catalog.replace(asked).await.expect("taken").expect("it exists");
    let mine = Entity { body: "mine".to_owned(), ..seen };
    assert_eq!(conflict(one.store.catalog.replace(mine.clone()).await), Conflict::Version);
    let again = Entity { version: theirs.version, ..mine };
    let replaced = one.store.catalog.replace(again).await.expect("taken").expect("it exists");
    assert!(replaced.version > theirs.version);
    one.delete(&replaced).await;
    assert_eq!(other.store.catalog.replace(theirs).await.expect("answered"), None);
}

/// Whoever has read a version has read everything up to it.
pub async fn versions_grow_in_the_order_of_commits(factory: &dyn Factory) {
    let Some((one, other)) = two(factory).await else { return };
    let mut creating = JoinSet::new();
    for (process, stage) in [&one, &other].into_iter().enumerate() {
        let catalog = stage.store.catalog.clone();
        creating.spawn(async move {
            for number in 0..10 {
                let id = format!("r{process}-{number}");
                let created = catalog.create(resource(&id, 1)).await.expect("nothing stands against it");
                let version = catalog.version().await.expect("read");
                assert!(version >= created.version, "what was answered is in the version");
                let all = catalog.list(EntityKind::Resource, 0, 99).await.expect("read");
                let mut versions: Vec<u64> = all.iter().map(|entity| entity.version).collect();
                versions.sort_unstable();
                let upto = all.iter().filter(|entity| entity.version <= version).count() as u64;
                assert_eq!(upto, version, "nothing up to it is missing: {versions:?}");
            }
        });
    }
    creating.join_all().await;
    assert_eq!(one.store.catalog.version().await.expect("read"), 20);
}

/// Urls that passed to another resource are not written under the old one by a process that has not heard of it.
pub async fn what_one_process_routes_anew_the_other_has_to_route_again(factory: &dyn Factory) {
    let Some((one, other)) = two(factory).await else { return };
    let all = one.resource("all", 1).await;
    let old = other.store.catalog.version().await.expect("read");
    let pattern = flare_model::pattern::Pattern::parse("http://h/users/{id}").expect("a pattern");
    let capture = Some(Capture { pattern, seen: vec![(lane(&all, 0), Seq(0))] });
    let users = one.create(NewEntity { capture, ..resource("users", 1) }).await;
    let mut write = put(lane(&all, 0), "http://h/users/1", 1);
    write.routed_by = old;
    assert_eq!(conflict(other.store.documents.commit(vec![write]).await), Conflict::Routing);
    let mut write = put(lane(&users, 0), "http://h/users/1", 1);
    write.routed_by = other.store.catalog.version().await.expect("read");
    assert_eq!(other.commit(vec![write]).await, [Outcome::Created]);
}

/// Its cursor is where the log stands at that very moment: what comes later is beyond it.
pub async fn a_subscription_misses_no_change_of_another_process(factory: &dyn Factory) {
    let Some((one, other)) = two(factory).await else { return };
    let lane = lane(&one.resource("users", 1).await, 0);
    let documents = other.store.documents.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let writing = JoinSet::from_iter([async move {
        let mut number = 0;
        while !stopped.load(SeqCst) {
            number += 1;
            let url = format!("http://h/{number}");
            documents.commit(vec![put(lane, &url, 1)]).await.expect("the log takes it");
        }
    }]);
    for number in 0..10 {
        let before = one.lane_state(lane).await.expect("it exists").head;
        let feed = feed(&one.subscription(&format!("s{number}"), "users", Start::Now).await, 0);
        let after = one.lane_state(lane).await.expect("it exists").head;
        let cursor = one.saved(feed).await.cursor;
        assert!(before <= cursor && cursor <= after, "{before} {cursor} {after}");
    }
    stop.store(true, SeqCst);
    writing.join_all().await;
}
