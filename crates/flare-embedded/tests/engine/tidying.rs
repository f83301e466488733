//! What the writer does beside its work: folding recent changes, and removing what deleted entities left.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::common::{Opened, number, puts, scanned, until, url};
use flare_model::feed::{Kept, Record, Standing, State};
use flare_model::ids::{Ordinal, Seq};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use flare_provider::conformance::fixture::{delete, feed, lane, ordinals, subscription};
use flare_provider::{EntityKind, FeedWrite, NewEntity};
use rusqlite::Connection;
use tempfile::TempDir;

fn pairs(database: &Connection, sql: &str) -> BTreeSet<(i64, i64)> {
    let mut statement = database.prepare(sql).expect("it fits the schema");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("read");
    rows.collect::<Result<_, _>>().expect("numbers")
}

#[tokio::test(flavor = "multi_thread")]
async fn once_folded_the_tables_lead_to_every_document_and_to_nothing_else() {
    let opened =
        Opened::over(TempDir::new().expect("a temporary folder"), |options| options.fold_after = 100);
    let users = opened.resource("users", 3).await;
    for round in 1..=12 {
        opened.commit(puts(&users, round * 7..round * 7 + 60, round as i64)).await.expect("taken");
        let some = (round * 7..round * 7 + 10).map(|n| delete(lane(&users, (n % 3) as u8), &url(n), None));
        opened.commit(some.collect()).await.expect("taken");
        if round % 4 == 0 {
            for index in 0..3 {
                let documents = opened.store().documents;
                let (lane, upto, before) =
                    (lane(&users, index), Seq(u64::MAX), Timestamp::from_millis(i64::MAX));
                documents
                    .remove_tombstones(0, lane, upto, before, &Default::default(), 20)
                    .await
                    .expect("removed");
            }
        }
    }
    let mut live = 0;
    for index in 0..3 {
        live += scanned(&opened.store(), lane(&users, index)).await as i64;
    }
    // Deleting a resource waits for all changes before it to be folded, so its end is theirs.
    opened.resource("other", 1).await;
    opened.store().catalog.delete(EntityKind::Resource, "other").await.expect("deleted");
    until(&opened, "SELECT count(*) FROM leavings", 0).await;
    until(&opened, "SELECT count(*) FROM journal", 0).await;
    let database = opened.database();
    assert_eq!(number(&database, "SELECT count(*) FROM documents"), live);
    let ordinals = pairs(&database, "SELECT lane << 40 | ordinal, id FROM documents");
    assert_eq!(pairs(&database, "SELECT place, document FROM by_ordinal"), ordinals);
    let seqs = pairs(&database, "SELECT lane << 40 | seq, id FROM documents");
    assert_eq!(pairs(&database, "SELECT place, document FROM by_seq"), seqs);
    let documents = pairs(&database, "SELECT id, id FROM documents");
    assert_eq!(pairs(&database, "SELECT document, document FROM by_url"), documents);
    assert_eq!(number(&database, "SELECT count(*) FROM by_url"), live);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_that_was_killed_half_way_leaves_nothing_stale_behind() {
    let opened =
        Opened::over(TempDir::new().expect("a temporary folder"), |options| options.fold_after = 100);
    let users = opened.resource("users", 1).await;
    opened.commit(puts(&users, 0..100, 1)).await.expect("taken");
    // Six entries are folded for each change: all urls, all ordinals, and most seqs.
    opened.commit(puts(&users, 100..145, 1)).await.expect("taken");
    let folded = number(&opened.database(), "SELECT count(*) FROM by_seq");
    assert!((1..100).contains(&folded), "{folded} seqs are folded, and not all of them");
    tokio::task::block_in_place(|| opened.embedded.abandon());
    let Opened { embedded, folder } = opened;
    drop(embedded);

    let opened = Opened::over(folder, |options| options.fold_after = 1_000);
    opened.commit(puts(&users, 0..100, 2)).await.expect("taken");
    opened.resource("other", 1).await;
    opened.store().catalog.delete(EntityKind::Resource, "other").await.expect("deleted");
    until(&opened, "SELECT count(*) FROM leavings", 0).await;
    let seqs = pairs(&opened.database(), "SELECT lane << 40 | seq, id FROM documents");
    assert_eq!(pairs(&opened.database(), "SELECT place, document FROM by_seq"), seqs);
    let folder = opened.close();
    assert_eq!(flare_embedded::audit(folder.path()).expect("read"), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documents_of_a_deleted_resource_go_in_slices_even_across_a_restart() {
    let opened = Opened::fresh();
    let users = opened.resource("users", 2).await;
    let orders = opened.resource("orders", 1).await;
    for first in (0..6_000).step_by(1_000) {
        opened.commit(puts(&users, first..first + 1_000, 1)).await.expect("taken");
    }
    opened.commit(puts(&orders, 0..10, 1)).await.expect("taken");
    opened.store().catalog.delete(EntityKind::Resource, "users").await.expect("deleted");
    assert_eq!(scanned(&opened.store(), lane(&users, 0)).await, 0, "gone at once");
    assert_eq!(opened.store().documents.lanes().await.expect("read").len(), 1);
    tokio::task::block_in_place(|| opened.embedded.abandon());
    let Opened { embedded, folder } = opened;
    drop(embedded);
    let left = number(&super::common::database(&folder), "SELECT count(*) FROM documents");

    let opened = Opened::over(folder, |_| {});
    assert_eq!(scanned(&opened.store(), lane(&users, 1)).await, 0, "gone for ever");
    let again = opened.resource("users", 1).await;
    opened.commit(puts(&again, 0..5, 1)).await.expect("the same urls are other documents");
    until(&opened, "SELECT count(*) FROM leavings", 0).await;
    let database = opened.database();
    assert_eq!(number(&database, "SELECT count(*) FROM documents"), 15, "of {left} that were left");
    assert_eq!(number(&database, "SELECT count(*) FROM lanes"), 2);
    // Almost all: folding frees a page of the journal now and then.
    until(&opened, "SELECT freelist_count < 50 FROM pragma_freelist_count", 1).await;
    assert_eq!(scanned(&opened.store(), lane(&orders, 0)).await, 10);
    assert_eq!(scanned(&opened.store(), lane(&again, 0)).await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feeds_of_a_deleted_subscription_leave_nothing() {
    let opened = Opened::fresh();
    opened.resource("users", 2).await;
    let store = opened.store();
    let subscribed = store.catalog.create(subscription("s", "users")).await.expect("created");
    let feed = feed(&subscribed, 1);
    let epoch = store.ledger.next_epoch().await.expect("given");
    store.ledger.open(&[feed], epoch).await.expect("opened");
    let waiting = |number| Standing {
        ordinal: Ordinal(number),
        seq: Seq(1),
        doubt: false,
        state: State::Waiting { due: Timestamp::from_millis(0) },
        replay: 0,
        trouble: None,
    };
    let held = ordinals(&(0..500).collect::<Vec<_>>());
    let state = || Arc::new(Kept { revision: Revision::Integer(1), content: "{}".into() });
    let kept = (0..2_000).map(|number| (Ordinal(number), state())).collect();
    let record = Record { held, standings: (0..2_000).map(waiting).collect(), kept, ..Record::default() };
    store
        .ledger
        .write(vec![FeedWrite { feed, epoch, record }])
        .await
        .expect("taken")
        .remove(0)
        .expect("written");
    assert!(store.catalog.delete(EntityKind::Subscription, "s").await.expect("deleted"));
    until(&opened, "SELECT count(*) FROM leavings", 0).await;
    for table in ["feeds", "held", "standings", "kept"] {
        assert_eq!(number(&opened.database(), &format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_that_had_nothing_are_gone_with_their_subscription() {
    let opened = Opened::fresh();
    opened.resource("users", 256).await;
    let store = opened.store();
    store.catalog.create(subscription("s", "users")).await.expect("created");
    assert!(store.catalog.delete(EntityKind::Subscription, "s").await.expect("deleted"));
    let database = opened.database();
    assert_eq!(number(&database, "SELECT count(*) FROM leavings"), 0, "nothing is left to do");
    assert_eq!(number(&database, "SELECT count(*) FROM feeds"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_comes_back_after_a_restart_is_not_removed_with_the_former_one() {
    let opened = Opened::fresh();
    let users = opened.resource("users", 1).await;
    let lane = lane(&users, 0);
    opened.commit(puts(&users, 0..3, 1)).await.expect("taken");
    opened.commit(vec![delete(lane, &url(2), None)]).await.expect("taken");
    let (upto, before) = (Seq(u64::MAX), Timestamp::from_millis(i64::MAX));
    let removed =
        opened.store().documents.remove_tombstones(0, lane, upto, before, &Default::default(), 9).await;
    assert_eq!(removed.expect("removed"), 1, "the newest row is free");
    tokio::task::block_in_place(|| opened.embedded.abandon());
    let Opened { embedded, folder } = opened;
    drop(embedded);

    let opened = Opened::over(folder, |options| options.fold_after = 1);
    for revision in 1..40 {
        opened.commit(puts(&users, 2..3, revision)).await.expect("taken");
    }
    until(&opened, "SELECT count(*) FROM journal WHERE number < 30", 0).await;
    let found = opened.store().documents.get(lane, &url(2)).await.expect("read").expect("it is there");
    assert_eq!(found.row.ordinal, Ordinal(3));
    assert_eq!(scanned(&opened.store(), lane).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_is_removed_gives_its_room_back() {
    let opened = Opened::fresh();
    let users = opened.resource("users", 1).await;
    let every = NewEntity { history: true, ..subscription("every", "users") };
    let every = opened.store().catalog.create(every).await.expect("created");
    for revision in 1..=40 {
        opened.commit(puts(&users, 0..300, revision)).await.expect("taken");
    }
    let lane = lane(&users, 0);
    let documents = opened.store().documents;
    let kept = documents.revisions(lane, None, usize::MAX).await.expect("read");
    assert_eq!(kept.len(), 39 * 300);
    let used = number(&opened.database(), "SELECT page_count FROM pragma_page_count");
    let gone: Vec<_> = kept.iter().map(|kept| (kept.ordinal, kept.seq)).collect();
    assert_eq!(documents.remove_revisions(0, lane, &gone).await.expect("removed"), gone.len() as u64);
    until(&opened, "SELECT freelist_count < 50 FROM pragma_freelist_count", 1).await;
    assert!(number(&opened.database(), "SELECT page_count FROM pragma_page_count") < used / 2);
    // What is left when the resource goes, goes with it.
    opened.commit(puts(&users, 0..300, 41)).await.expect("taken");
    opened.store().catalog.delete(every.kind, &every.id).await.expect("deleted");
    opened.store().catalog.delete(users.kind, &users.id).await.expect("deleted");
    until(&opened, "SELECT count(*) FROM history", 0).await;
}
