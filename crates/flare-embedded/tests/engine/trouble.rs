//! When things go wrong: a full disk, damaged rows, a fault of our own.

use std::sync::Arc;

use super::common::{Fatal, Opened, kind, number, puts, scanned, url};
use flare_model::feed::Record;
use flare_model::ids::Ordinal;
use flare_provider::conformance::fixture::{feed, lane, put_content, subscription};
use flare_provider::{Changed, ErrorKind, FeedWrite, Witness};
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_and_leaves_nothing_half_written() {
    let fatal = Fatal::default();
    let opened = Opened::over(TempDir::new().expect("a temporary folder"), |options| {
        fatal.set(options);
        options.fold_after = 50;
    });
    let users = opened.resource("users", 2).await;
    opened.commit(puts(&users, 0..100, 1)).await.expect("there is room");
    opened.embedded.limit_pages(Some(3)).await.expect("set");
    let mut taken = 100;
    while let Ok(()) = opened.commit(puts(&users, taken..taken + 10, 1)).await {
        taken += 10;
        assert!(taken < 1_000, "three pages are full some day");
    }
    let refused = opened.commit(puts(&users, taken..taken + 10, 1)).await;
    assert_eq!(kind(refused), ErrorKind::Unavailable);
    let both =
        scanned(&opened.store(), lane(&users, 0)).await + scanned(&opened.store(), lane(&users, 1)).await;
    assert_eq!(both as u64, taken, "what was answered, and nothing else");

    opened.embedded.limit_pages(None).await.expect("lifted");
    opened.commit(puts(&users, taken..taken + 200, 1)).await.expect("there is room again");
    for index in [0, 1] {
        let lane = lane(&users, index);
        let states = opened.store().documents.lanes().await.expect("read");
        let state = states.iter().find(|state| state.lane == lane).expect("it exists");
        assert_eq!(state.head.0, (taken + 200) / 2, "no number was lost on the way");
        assert_eq!(scanned(&opened.store(), lane).await as u64, state.documents);
    }
    assert_eq!(fatal.heard(), [], "a full disk is no reason to end");
    let folder = opened.close();
    let database = super::common::database(&folder);
    assert_eq!(number(&database, "SELECT count(*) FROM documents") as u64, taken + 200);
    let check: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checked");
    assert_eq!(check, "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_waiting_refuses_documents_and_lets_the_rest_wait() {
    let opened =
        Opened::over(TempDir::new().expect("a temporary folder"), |options| options.queue_bytes = 10_000);
    let users = opened.resource("users", 1).await;
    let large = put_content(lane(&users, 0), &url(1), 1, vec![b' '; 9_000].into());
    let store = opened.store();
    let (mut refused, mut waiting) = (0, tokio::task::JoinSet::new());
    for _ in 0..200 {
        let (documents, ledger, large) = (store.documents.clone(), store.ledger.clone(), large.clone());
        waiting.spawn(async move { documents.commit(vec![large]).await.err().map(|error| error.kind) });
        waiting.spawn(async move { ledger.next_epoch().await.err().map(|error| error.kind) });
    }
    for error in waiting.join_all().await.into_iter().flatten() {
        assert_eq!(error, ErrorKind::Unavailable);
        refused += 1;
    }
    assert!(refused <= 200, "epochs wait for their turn");
    opened.commit(vec![large]).await.expect("there is room again");
    let huge = put_content(lane(&users, 0), &url(2), 1, vec![b' '; 100_000].into());
    opened.commit(vec![huge]).await.expect("what is larger than the queue goes alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_feed_is_corrupt_and_no_panic() {
    for damage in [
        "UPDATE feeds SET ahead = x'80'",
        "UPDATE feeds SET sweep = x'0902'",
        "UPDATE feeds SET held_delta = x'ffffffffffffffffffffff'",
        "UPDATE held SET bits = x'3b30'",
        "UPDATE held SET bits = zeroblob(40)",
        "UPDATE held SET chunk = chunk + 1",
        "UPDATE standings SET state = 77",
        "UPDATE standings SET trouble = '{'",
    ] {
        let opened = Opened::fresh();
        opened.resource("users", 1).await;
        let store = opened.store();
        let feed = feed(&store.catalog.create(subscription("s", "users")).await.expect("created"), 0);
        let epoch = store.ledger.next_epoch().await.expect("given");
        store.ledger.open(&[feed], epoch).await.expect("opened");
        let held: Vec<Ordinal> = (0..400).map(|number| Ordinal(number * 3)).collect();
        let standing = flare_model::feed::Standing {
            ordinal: Ordinal(7),
            seq: flare_model::ids::Seq(1),
            doubt: false,
            state: flare_model::feed::State::Doubtful,
            replay: 0,
            trouble: None,
        };
        let record = Record { held, standings: vec![standing], ..Record::default() };
        let write = |record| vec![FeedWrite { feed, epoch, record }];
        store.ledger.write(write(record.clone())).await.expect("taken").remove(0).expect("written");
        assert_eq!(opened.database().execute(damage, []).expect("it fits the schema"), 1, "{damage}");

        let found = store.ledger.open(&[feed], epoch).await;
        // A state that is unknown is in no list.
        if !damage.contains("77") {
            assert_eq!(kind(found), ErrorKind::Corrupt, "{damage}");
        }
        if damage.contains("standings") {
            assert_eq!(kind(store.ledger.standing(feed, Ordinal(7)).await), ErrorKind::Corrupt, "{damage}");
        }
        if damage.contains("held") && !damage.contains("chunk") {
            let written =
                store.ledger.write(write(record)).await.expect("the others are none of it").remove(0);
            assert_eq!(kind(written), ErrorKind::Corrupt, "{damage}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_journal_is_refused_at_the_door() {
    let opened = Opened::fresh();
    let users = opened.resource("users", 1).await;
    opened.commit(puts(&users, 0..3, 1)).await.expect("taken");
    let folder = opened.close();
    super::common::database(&folder).execute("UPDATE journal SET changes = x'0901'", []).expect("written");
    let refused = flare_embedded::Embedded::open(flare_embedded::Options::new(folder.path()));
    assert_eq!(kind(refused), ErrorKind::Corrupt);
}

struct Panics;

impl Witness for Panics {
    fn committed(&self, _: Vec<Changed>) {
        panic!("a fault in a witness");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_dies_is_heard_of() {
    let fatal = Fatal::default();
    let opened = Opened::over(TempDir::new().expect("a temporary folder"), |options| fatal.set(options));
    let users = opened.resource("users", 1).await;
    let store = opened.store();
    store.documents.watch(Arc::new(Panics));
    assert_eq!(kind(opened.commit(puts(&users, 0..1, 1)).await), ErrorKind::Internal);
    assert_eq!(fatal.heard(), [ErrorKind::Internal]);
    assert_eq!(kind(opened.commit(puts(&users, 1..2, 1)).await), ErrorKind::Internal);
    assert_eq!(kind(store.ledger.next_epoch().await), ErrorKind::Internal);
    assert_eq!(kind(store.documents.lanes().await), ErrorKind::Internal);
    let folder = opened.close();
    assert_eq!(
        number(&super::common::database(&folder), "SELECT count(*) FROM documents"),
        1,
        "it was durable before"
    );
}
