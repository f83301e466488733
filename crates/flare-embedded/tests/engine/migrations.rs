//! Opening folders: new ones, old ones, those of others, and those in use.

use super::common::{Opened, database, number};
use flare_embedded::{Embedded, Options, migrations};
use flare_provider::{EntityKind, ErrorKind, ProviderError};
use rusqlite::Connection;
use tempfile::TempDir;

fn refused(folder: &TempDir) -> ProviderError {
    let opened = Embedded::open(Options::new(folder.path()));
    opened.err().expect("it is refused")
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_are_recorded_and_run_once() {
    let folder = TempDir::new().expect("a temporary folder");
    let pending = migrations::status(folder.path()).expect("read");
    assert!(!pending.is_empty() && pending.iter().all(|migration| migration.applied.is_none()));
    assert!(!folder.path().join("flare.db").exists(), "asking makes nothing");

    let applied = migrations::up(folder.path()).expect("applied");
    assert_eq!(applied.len(), pending.len());
    assert_eq!(migrations::status(folder.path()).expect("read"), applied);
    let incarnation = number(&database(&folder), "SELECT value FROM meta WHERE name = 'incarnation'");
    assert_eq!(migrations::up(folder.path()).expect("applied"), [], "there is nothing left to do");
    assert_eq!(number(&database(&folder), "SELECT value FROM meta WHERE name = 'incarnation'"), incarnation);

    let opened = Opened::over(folder, |_| {});
    assert_eq!(opened.store().documents.incarnation().await.expect("answered"), incarnation as u64);
    assert_eq!(migrations::status(opened.folder.path()).expect("beside a running one"), applied);
    let by = applied[0].applied.as_ref().expect("it was applied");
    assert!(by.at.ends_with('Z') && by.by == env!("CARGO_PKG_VERSION"), "{by:?}");
}

/// A database as the first migration leaves it, which is what the first version has.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_the_first_version_goes_on_and_learns_to_keep_a_history() {
    let folder = TempDir::new().expect("a temporary folder");
    let old = database(&folder);
    old.execute_batch(
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = 0x464c5245;
         CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, flare TEXT NOT NULL,
             applied_at TEXT NOT NULL) STRICT;
         INSERT INTO migrations VALUES (1, 'beginning', '0.1.0', '2026-11-15T00:00:00.000Z');",
    )
    .expect("written");
    old.execute_batch(include_str!("../../src/migrations/0001_beginning.sql")).expect("the first shape");
    old.execute_batch(
        "INSERT INTO entities VALUES ('resource', 1, 'users', 1, NULL, '[]', 'body', 1);
         INSERT INTO entities VALUES ('subscription', 1, 's', 2, 'users', '[]', 'body', 1);
         INSERT INTO lanes VALUES (1, 1, 0, 0, 0, 0, 0, 0);
         INSERT INTO feeds (id, lane, epoch, incarnation, cursor, issued, delivered, discarded, failed, held_delta)
             SELECT 1, 1, 0, value, 0, 0, 7, 0, 0, x'' FROM meta WHERE name = 'incarnation';
         UPDATE meta SET value = 1 WHERE name LIKE 'last_%'; UPDATE meta SET value = 2 WHERE name = 'catalog_version';",
    )
    .expect("written");
    drop(old);
    let opened = Opened::over(folder, |_| {});
    let catalog = opened.store().catalog;
    let users = catalog.get(EntityKind::Resource, "users").await.expect("read").expect("it is there");
    let entity = catalog.get(EntityKind::Subscription, "s").await.expect("read").expect("it is there");
    assert!(!entity.history);
    let feed = flare_provider::conformance::fixture::feed(&entity, 0);
    let saved = opened.store().ledger.open(&[feed], 9).await.expect("opened").remove(0).saved;
    assert_eq!((saved.since, saved.tally.delivered, saved.tally.skipped, saved.strange), (None, 7, 0, false));
    assert_eq!((saved.judging.0, saved.unjudged.len(), saved.judged.len()), (0, 0, 0));
    let changed = flare_provider::Entity { history: true, ..entity };
    catalog.replace(changed).await.expect("taken").expect("it is there");
    for revision in 1..=3 {
        opened.commit(super::common::puts(&users, 0..1, revision)).await.expect("taken");
    }
    assert_eq!(number(&opened.database(), "SELECT count(*) FROM history"), 2);
}

#[test]
fn what_cannot_be_changed_later_is_set_from_the_beginning() {
    let opened = Opened::fresh();
    let database = opened.database();
    assert_eq!(number(&database, "PRAGMA page_size"), 4096);
    assert_eq!(number(&database, "PRAGMA auto_vacuum"), 2, "incremental");
    let mode: String = database.query_row("PRAGMA journal_mode", [], |row| row.get(0)).expect("a mode");
    assert_eq!(mode, "wal");
}

#[test]
fn a_database_of_a_newer_flare_is_refused_in_clear_words() {
    let folder = TempDir::new().expect("a temporary folder");
    migrations::up(folder.path()).expect("applied");
    database(&folder)
        .execute("INSERT INTO migrations VALUES (99, 'tomorrow', '7.1.0', '2030-01-01T00:00:00Z')", [])
        .expect("written");
    for error in [refused(&folder), migrations::up(folder.path()).expect_err("refused too")] {
        assert_eq!(error.kind, ErrorKind::Corrupt);
        for word in ["newer Flare", "99", "tomorrow", "7.1.0", env!("CARGO_PKG_VERSION")] {
            assert!(error.detail.contains(word), "{}", error.detail);
        }
    }
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("flare.db");
    let other = Connection::open(&path).expect("made");
    other.execute_batch("CREATE TABLE recipes (name TEXT)").expect("made");
    drop(other);
    let before = std::fs::read(&path).expect("read");
    let error = refused(&folder);
    assert_eq!(error.kind, ErrorKind::Corrupt);
    assert!(error.detail.contains("another program"), "{}", error.detail);
    assert_eq!(std::fs::read(&path).expect("read"), before);

    std::fs::write(&path, "this is no database, but it is long enough to be taken for one ".repeat(40))
        .expect("written");
    assert_eq!(refused(&folder).kind, ErrorKind::Corrupt);
}

#[test]
fn a_folder_in_use_is_refused_by_name() {
    let opened = Opened::fresh();
    let error = refused(&opened.folder);
    assert_eq!(error.kind, ErrorKind::Unavailable);
    let path = opened.folder.path().display().to_string();
    assert!(error.detail.contains("another Flare") && error.detail.contains(&path), "{}", error.detail);
    assert_eq!(migrations::up(opened.folder.path()).expect("there is nothing to do"), []);
    opened.embedded.close();
    Embedded::open(Options::new(opened.folder.path())).expect("it is free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_does_what_waits_and_is_safe_to_repeat() {
    let opened = Opened::fresh();
    let users = opened.resource("users", 2).await;
    let store = opened.store();
    let documents = store.documents.clone();
    let mut writing = tokio::task::JoinSet::new();
    writing.spawn(async move { documents.commit(super::common::puts(&users, 0..500, 1)).await });
    while opened.store().documents.lanes().await.expect("read").iter().all(|lane| lane.documents == 0) {
        tokio::task::yield_now().await;
    }
    tokio::task::block_in_place(|| {
        opened.embedded.close();
        opened.embedded.close();
    });
    let answer = writing.join_next().await.expect("it was spawned").expect("no panic");
    assert_eq!(answer.expect("it was done").len(), 500);
    assert_eq!(
        super::common::kind(store.catalog.get(EntityKind::Resource, "users").await),
        ErrorKind::Unavailable
    );
    assert_eq!(super::common::kind(store.ledger.next_epoch().await), ErrorKind::Unavailable);
    let log = std::fs::metadata(opened.folder.path().join("flare.db-wal")).map_or(0, |log| log.len());
    assert_eq!(log, 0, "all of it is in the database");
    assert_eq!(number(&opened.database(), "SELECT count(*) FROM documents"), 500);
}
