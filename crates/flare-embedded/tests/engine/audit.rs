//! The audit of a store: nothing is found in a sound one, and every damage by its name.

use std::sync::Arc;

use super::common::{Opened, database, kind, puts, until, url};
use flare_embedded::audit;
use flare_model::feed::{Kept, Record, Standing, State, Sweep, SweepKind};
use flare_model::ids::{Ordinal, Seq};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use flare_provider::conformance::fixture::{delete, feed, lane, ordinals, subscription};
use flare_provider::{EntityKind, ErrorKind, FeedWrite, NewEntity};
use tempfile::TempDir;

/// A store with a little of everything: documents and tombstones, folded and not, older revisions, feeds with bits,
/// standings, states and a sweep, and a resource and a subscription that were deleted and are not removed yet.
async fn furnished(fold_after: usize) -> TempDir {
    let opened = Opened::over(TempDir::new().expect("a temporary folder"), |o| o.fold_after = fold_after);
    let users = opened.resource("users", 2).await;
    let store = opened.store();
    let every = NewEntity { history: true, keys: vec!["k".to_owned()], ..subscription("every", "users") };
    let every = store.catalog.create(every).await.expect("created");
    opened.commit(puts(&users, 0..30, 1)).await.expect("taken");
    opened.commit(puts(&users, 0..20, 2)).await.expect("taken");
    let gone = (0..6).map(|n| delete(lane(&users, (n % 2) as u8), &url(n), None));
    opened.commit(gone.collect()).await.expect("taken");
    let all = (Seq(u64::MAX), Timestamp::from_millis(i64::MAX));
    let keep = [0, 1].into_iter().collect();
    store.documents.remove_tombstones(0, lane(&users, 0), all.0, all.1, &keep, 9).await.expect("removed");

    let feed = feed(&every, 0);
    let epoch = store.ledger.next_epoch().await.expect("given");
    store.ledger.open(&[feed], epoch).await.expect("opened");
    let standing = Standing {
        ordinal: Ordinal(5),
        seq: Seq(6),
        doubt: false,
        state: State::GaveUp,
        replay: 0,
        trouble: None,
    };
    let state = Arc::new(Kept { revision: Revision::Integer(1), content: "{}".into() });
    let record = Record {
        cursor: Seq(20),
        held: ordinals(&[1, 7, 8]),
        standings: vec![standing],
        sweep: Some(Sweep { replay: 1, kind: SweepKind::Filter, position: Seq(3), end: Seq(20), met: 3 }),
        life: 4,
        kept: vec![(Ordinal(7), state)],
        since: Some(Seq(0)),
        ..Record::default()
    };
    let write = vec![FeedWrite { feed, epoch, record }];
    store.ledger.write(write).await.expect("taken").remove(0).expect("written");

    let orders = opened.resource("orders", 1).await;
    opened.commit(puts(&orders, 100..110, 1)).await.expect("taken");
    store.catalog.create(subscription("gone", "users")).await.expect("created");
    store.catalog.delete(EntityKind::Resource, "orders").await.expect("deleted");
    store.catalog.delete(EntityKind::Subscription, "gone").await.expect("deleted");
    tokio::task::block_in_place(|| opened.embedded.abandon());
    opened.folder
}

/// The same, once all is folded and removed that waits for it: so the tables are as the damages below expect them.
async fn tidied() -> TempDir {
    let opened = Opened::over(furnished(1).await, |options| options.fold_after = 1);
    until(&opened, "SELECT count(*) FROM leavings", 0).await;
    until(&opened, "SELECT count(*) FROM journal", 0).await;
    opened.close()
}

fn found(folder: &TempDir) -> Vec<String> {
    let findings = audit(folder.path()).expect("the store can be read");
    findings.iter().map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_store_has_no_findings_however_it_was_left() {
    for fold_after in [1, 7, 40, 100_000] {
        let folder = furnished(fold_after).await;
        assert_eq!(found(&folder), [""; 0], "abandoned, folding after {fold_after}");
        let opened = Opened::over(folder, |options| options.fold_after = fold_after);
        let folder = opened.close();
        assert_eq!(found(&folder), [""; 0], "closed, folding after {fold_after}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_writes_nothing_and_may_look_beside_whoever_uses_the_store() {
    let folder = furnished(7).await;
    let before = std::fs::read(folder.path().join("flare.db")).expect("it is there");
    assert_eq!(found(&folder), [""; 0]);
    assert!(std::fs::read(folder.path().join("flare.db")).expect("it is there") == before);
    let opened = Opened::over(folder, |_| {});
    assert_eq!(found(&opened.folder), [""; 0]);
    let nothing = TempDir::new().expect("a temporary folder");
    assert_eq!(kind(audit(&nothing.path().join("elsewhere"))), ErrorKind::Unavailable);
    assert!(!nothing.path().join("elsewhere").exists());
    let folder = opened.close();
    database(&folder).execute("DELETE FROM migrations WHERE number = 4", []).expect("written");
    assert_eq!(kind(audit(folder.path())), ErrorKind::Unsupported);
}

/// What is done to a folded store, and a part of what has to be found.
const DAMAGES: &[(&str, &str)] = &[
    ("DELETE FROM by_url WHERE document = 9", "users/8 in lane 0 of resource users: is not found by its url"),
    (
        "DELETE FROM by_ordinal WHERE document = 9",
        "users/8 in lane 0 of resource users: is not found by its ordinal 4",
    ),
    ("DELETE FROM by_seq WHERE document = 9", "users/8 in lane 0 of resource users: is not found by its seq"),
    ("INSERT INTO by_url VALUES (77, 9)", "hash 77 in by_url: leads to row 9"),
    ("INSERT INTO by_url VALUES (77, 999)", "hash 77 in by_url: leads to row 999"),
    (
        "INSERT INTO by_ordinal VALUES ((1 << 40) + 900, 9)",
        "ordinal 900 of lane 0 of resource users in by_ordinal",
    ),
    ("INSERT INTO by_seq VALUES ((1 << 40) + 1, 9)", "seq 1 of lane 0 of resource users in by_seq"),
    ("UPDATE documents SET url = 'http://api.company.com/users/10' WHERE id = 9", "is not found by its url"),
    ("DELETE FROM documents WHERE id = 9", "lane 0 of resource users: counts 12 live documents, and has 11"),
    ("DELETE FROM documents WHERE id = 15", "the client has document 7, which is no more"),
    ("UPDATE documents SET ordinal = 5 WHERE id = 9", "has the ordinal 5 of another document"),
    ("UPDATE documents SET seq = 900 WHERE id = 9", "its seq 900 is beyond the lane's head"),
    ("UPDATE documents SET born = 30 WHERE id = 30", "it was born at 30"),
    ("UPDATE documents SET lane = 77 WHERE id = 9", "its lane does not exist"),
    ("UPDATE lanes SET documents = documents + 1 WHERE id = 1", "lane 0 of resource users: counts"),
    (
        "UPDATE lanes SET tombstones = 0 WHERE id = 2",
        "lane 1 of resource users: counts 0 tombstones, and has 3",
    ),
    (
        "UPDATE lanes SET revisions = 0 WHERE id = 2",
        "lane 1 of resource users: counts 0 older revisions, and has 13",
    ),
    ("UPDATE lanes SET next_ordinal = 3 WHERE id = 1", "its ordinal 4 is still to be given out, from 3 on"),
    ("UPDATE lanes SET head = 5 WHERE id = 1", "the cursor is 20, beyond the lane's head 5"),
    ("UPDATE lanes SET head = 5 WHERE id = 1", "the end of its sweep is 20, beyond the lane's head 5"),
    ("UPDATE lanes SET head = 5 WHERE id = 1", "the standing of document 5 is for 6, beyond"),
    (
        "DELETE FROM lanes WHERE id = 2",
        "resource users: has 2 lanes by its own word, and these are there: [0]",
    ),
    ("DELETE FROM entities WHERE id = 'users'", "was left behind by its resource"),
    ("DELETE FROM entities WHERE id = 'users'", "subscription every: what it follows does not exist"),
    ("DELETE FROM entities WHERE id = 'every'", "was left behind by its subscription"),
    ("DELETE FROM entity_keys", "subscription every: its key \"k\" is not kept for it"),
    (
        "INSERT INTO entity_keys VALUES ('subscription', '/users', 'x', 1)",
        "key \"x\": is kept for subscription 1",
    ),
    (
        "UPDATE meta SET value = 0 WHERE name = 'last_subscription'",
        "the count last_subscription: is 0, and 1 is in use",
    ),
    ("UPDATE meta SET value = 0 WHERE name = 'last_epoch'", "the count last_epoch"),
    ("DELETE FROM meta WHERE name = 'incarnation'", "the count incarnation: is not there"),
    ("DELETE FROM meta WHERE name = 'last_letter'", "the count last_letter: is not there"),
    (
        "INSERT INTO letters VALUES (5, 1, '0', 0, '{}', x'7b7d')",
        "the count last_letter: is 0, and 5 is in use",
    ),
    (
        "INSERT INTO letters VALUES (5, 9, '0', 0, '{}', x'7b7d')",
        "the deleted consumer with the number 9: has left dead letters behind",
    ),
    (
        "INSERT INTO readings VALUES (9, '0', 1, NULL)",
        "the deleted consumer with the number 9: has left how far it was read behind",
    ),
    ("INSERT INTO readings VALUES (9, '0', 900, NULL)", "the count last_epoch"),
    ("DELETE FROM feeds WHERE id = 1", "subscription every: has no feed for lane 0"),
    (
        "DELETE FROM feeds WHERE id = 1",
        "feed of lane 0 of subscription every: is gone and has left standings behind",
    ),
    ("UPDATE feeds SET lane = 2 WHERE id = 1", "follows lane 1 of resource users, which is not its own"),
    ("UPDATE feeds SET unjudged = x'80' WHERE id = 1", "what is to be judged makes no sense"),
    ("UPDATE feeds SET judged = x'80' WHERE id = 1", "what was judged makes no sense"),
    ("UPDATE feeds SET ahead = x'80' WHERE id = 1", "what is ahead of its cursor makes no sense"),
    ("UPDATE feeds SET ahead = x'e80700' WHERE id = 1", "the horizon is 1000, beyond"),
    ("UPDATE feeds SET sweep = x'09' WHERE id = 1", "its sweep makes no sense"),
    ("UPDATE feeds SET held_delta = x'80' WHERE id = 1", "the list of what the client has makes no sense"),
    ("INSERT INTO held VALUES (1, 0, x'00')", "the bitmap of what the client has makes no sense"),
    ("INSERT INTO held SELECT 7, 0, x'00'", "is gone and has left a bitmap behind"),
    ("UPDATE standings SET feed = 7", "is gone and has left standings behind"),
    ("UPDATE kept SET feed = 7", "is gone and has left kept states behind"),
    ("UPDATE standings SET state = 77", "cannot be read: the state of the standing of document 5"),
    ("UPDATE standings SET ordinal = 900", "a standing is for document 900, which is no more"),
    ("UPDATE kept SET ordinal = 900", "a state is kept of document 900, which is no more"),
    ("UPDATE history SET place = place + (9 << 40) WHERE until = 16", "its lane does not exist"),
    (
        "UPDATE history SET document = document + 900 WHERE until = 16",
        "a document that never was in this lane",
    ),
    ("UPDATE history SET until = 900 WHERE until = 16", "was replaced by the change 900"),
    ("UPDATE history SET place = place + 24 WHERE place = (2 << 40) + 1", "the newest one of a document"),
    ("UPDATE lanes SET resource = 77, gone = 1 WHERE id = 2", "is gone, and nothing will remove it"),
    (
        "INSERT INTO leavings (kind, key, journal) VALUES ('lane', 900, 0)",
        "is still to be removed, and is not there",
    ),
    ("INSERT INTO leavings (kind, key, journal) VALUES ('feed', 1, 0)", "is still to be removed, and in use"),
    ("INSERT INTO journal VALUES (900, x'0901')", "the journal: row 900 of the journal makes no sense"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_damage_is_found_by_its_name() {
    let folder = tidied().await;
    let mut missed = Vec::new();
    for (damage, expected) in DAMAGES {
        let copy = TempDir::new().expect("a temporary folder");
        for file in ["flare.db", "flare.db-wal"] {
            std::fs::copy(folder.path().join(file), copy.path().join(file)).expect("copied");
        }
        assert!(database(&copy).execute(damage, []).expect("it fits the schema") > 0, "{damage}");
        let found = found(&copy);
        if !found.iter().any(|finding| finding.contains(expected)) {
            missed.push((damage, expected, found));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_the_journal_lacks_is_missed() {
    let folder = tidied().await;
    let two = "INSERT INTO journal VALUES (900, x''), (902, x'')";
    assert_eq!(database(&folder).execute(two, []).expect("it fits the schema"), 2);
    let found = found(&folder);
    assert!(
        found.iter().any(|finding| finding.starts_with("the journal: row 902 follows row 900")),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_is_found_and_the_rest_is_not_guessed() {
    let folder = tidied().await;
    let path = folder.path().join("flare.db");
    let mut bytes = std::fs::read(&path).expect("it is there");
    let page: i64 = database(&folder)
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'tombstones'", [], |row| row.get(0))
        .expect("an index");
    let start = (page as usize - 1) * 4096;
    bytes[start + 100..start + 4096].fill(0);
    std::fs::write(&path, bytes).expect("written");
    let found = found(&folder);
    assert!(
        !found.is_empty() && found.iter().all(|finding| finding.starts_with("the database file")),
        "{found:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_feed_that_begins_again_or_is_of_another_log_has_recorded_is_not_compared() {
    for sound in [
        r#"UPDATE entities SET body = '{"disabled":{"startOver":true}}' WHERE id = 'every'"#,
        "UPDATE feeds SET incarnation = incarnation + 1",
    ] {
        let folder = furnished(1).await;
        database(&folder).execute("UPDATE standings SET ordinal = 900", []).expect("written");
        assert_eq!(found(&folder).len(), 1);
        database(&folder).execute(sound, []).expect("written");
        assert_eq!(found(&folder), [""; 0]);
    }
}
