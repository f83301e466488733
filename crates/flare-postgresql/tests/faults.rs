//! What only an engine over a network meets: answers that are lost on the way, and another process that takes over.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::proxy::{Next, Proxy};
use flare_model::document::Outcome;
use flare_model::feed::{Record, Standing, State};
use flare_model::ids::{Ordinal, Seq};
use flare_model::time::Timestamp;
use flare_postgresql::{Options, Postgresql, Tls};
use flare_provider::conformance::fixture::{Recorder, feed, lane, ordinals, put, resource, subscription};
use flare_provider::{EntityKind, ErrorKind, FeedWrite, Store};

/// A store behind a proxy. `None` where there is no server, which was said.
async fn behind_a_proxy() -> Option<(Postgresql, Proxy)> {
    behind_a_proxy_in(common::fresh_schema()).await
}

async fn behind_a_proxy_in(schema: String) -> Option<(Postgresql, Proxy)> {
    let server = common::server()?;
    let there = common::address(&server.url);
    let proxy = Proxy::before(there.clone()).await;
    let mut options = Options::new(server.url.replace(&there, &proxy.addr().to_string()));
    options.schema = schema;
    options.connections = 6;
    options.tls = Tls::Disable;
    Some((tokio::task::block_in_place(|| Postgresql::open(options)).expect("it is there"), proxy))
}

async fn outcomes(store: &Store, write: flare_model::document::Write) -> flare_provider::Result<Outcome> {
    let mut answers = store.documents.commit(vec![write]).await?;
    answers.remove(0).map(|committed| committed.outcome)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_asked_for_and_answered() {
    let Some((postgresql, proxy)) = behind_a_proxy().await else { return };
    let store = postgresql.store();
    let lane = lane(&store.catalog.create(resource("users", 1)).await.expect("created"), 0);
    let witness = Recorder::over(&store);
    proxy.set(Next::IsNotAnswered, false);
    assert_eq!(outcomes(&store, put(lane, "http://h/1", 1)).await.expect("it is known"), Outcome::Created);
    assert_eq!(outcomes(&store, put(lane, "http://h/1", 1)).await.expect("taken"), Outcome::Unchanged);
    assert_eq!(outcomes(&store, put(lane, "http://h/2", 1)).await.expect("taken"), Outcome::Created);
    let heard: Vec<u64> = witness.heard(lane).iter().map(|document| document.row.seq.0).collect();
    assert_eq!(heard, [1, 2], "each once and in order");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_never_got_there_is_unavailable_and_leaves_nothing() {
    let Some((postgresql, proxy)) = behind_a_proxy().await else { return };
    let store = postgresql.store();
    let lane = lane(&store.catalog.create(resource("users", 1)).await.expect("created"), 0);
    let witness = Recorder::over(&store);
    proxy.set(Next::IsLost, false);
    let refused = outcomes(&store, put(lane, "http://h/1", 1)).await.expect_err("it was lost");
    assert_eq!(refused.kind, ErrorKind::Unavailable, "{refused}");
    assert_eq!(store.documents.get(lane, "http://h/1").await.expect("read"), None);
    assert_eq!(outcomes(&store, put(lane, "http://h/1", 1)).await.expect("taken"), Outcome::Created);
    let heard: Vec<u64> = witness.heard(lane).iter().map(|document| document.row.seq.0).collect();
    assert_eq!(heard, [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_nobody_can_say_the_caller_hears_so_and_the_witness_hears_it_in_the_end() {
    let Some((postgresql, proxy)) = behind_a_proxy().await else { return };
    let store = postgresql.store();
    let lane = lane(&store.catalog.create(resource("users", 1)).await.expect("created"), 0);
    let witness = Recorder::over(&store);
    outcomes(&store, put(lane, "http://h/0", 1)).await.expect("the committer is connected");
    proxy.set(Next::IsNotAnswered, true);
    let unknown = outcomes(&store, put(lane, "http://h/1", 1)).await.expect_err("nobody can say");
    assert_eq!(unknown.kind, ErrorKind::Unknown, "{unknown}");
    let refused =
        outcomes(&store, put(lane, "http://h/2", 1)).await.expect_err("nothing is written meanwhile");
    assert_eq!(refused.kind, ErrorKind::Unavailable, "{refused}");
    proxy.open();
    let outcome = loop {
        match outcomes(&store, put(lane, "http://h/1", 1)).await {
            Ok(outcome) => break outcome,
            Err(error) => assert!(error.is_passing(), "{error}"),
        }
    };
    assert_eq!(outcome, Outcome::Unchanged, "it was written");
    let heard: Vec<u64> = witness.heard(lane).iter().map(|document| document.row.seq.0).collect();
    assert_eq!(heard, [1, 2], "what is in memory is what is stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_whose_answer_is_lost_is_answered_all_the_same() {
    let Some((postgresql, proxy)) = behind_a_proxy().await else { return };
    let catalog = postgresql.store().catalog;
    proxy.set(Next::IsNotAnswered, false);
    let created = catalog.create(resource("users", 2)).await.expect("it is known");
    assert_eq!(catalog.get(EntityKind::Resource, "users").await.expect("read"), Some(created));
    proxy.set(Next::IsLost, false);
    let lost = catalog.create(resource("groups", 2)).await.expect_err("it was lost");
    assert_eq!(lost.kind, ErrorKind::Unavailable, "{lost}");
    assert_eq!(catalog.get(EntityKind::Resource, "groups").await.expect("read"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_whose_answer_is_lost_are_written_again_and_are_the_same() {
    let Some((postgresql, proxy)) = behind_a_proxy().await else { return };
    let store = postgresql.store();
    store.catalog.create(resource("users", 1)).await.expect("created");
    let feed = feed(&store.catalog.create(subscription("s", "users")).await.expect("created"), 0);
    let epoch = store.ledger.next_epoch().await.expect("an epoch");
    store.ledger.open(&[feed], epoch).await.expect("opened");
    let (ordinal, due) = (Ordinal(7), Timestamp::from_millis(5));
    let standing = Standing {
        ordinal,
        seq: Seq(3),
        doubt: false,
        state: State::Waiting { due },
        replay: 0,
        trouble: None,
    };
    let record = Record {
        cursor: Seq(9),
        held: ordinals(&[1, 2]),
        standings: vec![standing.clone()],
        ..Record::default()
    };
    let writes = || vec![FeedWrite { feed, epoch, record: record.clone() }];
    for next in [Next::IsNotAnswered, Next::IsLost] {
        proxy.set(next, false);
        let lost = store.ledger.write(writes()).await.expect_err("nobody heard");
        assert_eq!(lost.kind, ErrorKind::Unknown, "{lost}");
        assert!(store.ledger.write(writes()).await.expect("taken").remove(0).is_ok());
    }
    let opened = store.ledger.open(&[feed], epoch).await.expect("opened").remove(0);
    assert_eq!((opened.saved.cursor, opened.saved.standings), (Seq(9), vec![standing]));
    assert_eq!(opened.saved.held.iter().collect::<Vec<_>>(), [1, 2]);
}

/// A session of a stranger, who works in a schema and ends with the test.
async fn stranger(schema: &str) -> (tokio_postgres::Client, tokio::task::JoinSet<()>) {
    let url = &common::server().expect("it was there").url;
    let (client, connection) =
        tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("it is there");
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    client.batch_execute(&format!("SET search_path = {schema}")).await.expect("it is set");
    (client, tasks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_suspended_in_the_middle_of_a_commit_holds_nobody_up_for_long() {
    let schema = common::fresh_schema();
    let Some((postgresql, proxy)) = behind_a_proxy_in(schema.clone()).await else { return };
    let store = postgresql.store();
    let lane = lane(&store.catalog.create(resource("users", 1)).await.expect("created"), 0);
    outcomes(&store, put(lane, "http://h/0", 1)).await.expect("the committer is connected");
    proxy.set(Next::IsHeld, false);
    let mut committing = tokio::task::JoinSet::new();
    let suspended = store.clone();
    committing.spawn(async move { outcomes(&suspended, put(lane, "http://h/1", 1)).await });
    let (other, _tasks) = stranger(&schema).await;
    let held = "SELECT count(*) FROM lanes WHERE head = 1 AND id NOT IN
        (SELECT id FROM lanes FOR NO KEY UPDATE SKIP LOCKED)";
    while other.query_one(held, &[]).await.expect("read").get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    // Two of the shortest leases: within that others have to have taken over.
    other.batch_execute("SET lock_timeout = '4s'").await.expect("it is set");
    other.batch_execute("SELECT id FROM lanes FOR NO KEY UPDATE").await.expect("nobody holds it any more");
    committing
        .join_next()
        .await
        .expect("it runs")
        .expect("it does not panic")
        .expect_err("it was not written");
    assert_eq!(outcomes(&store, put(lane, "http://h/1", 1)).await.expect("taken"), Outcome::Created);
}

/// Whoever takes feeds over opens them in order while their former owner writes: if that one went another way, each would
/// hold what the other waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_written_in_the_order_in_which_feeds_are_opened() {
    let schema = common::fresh_schema();
    let Some((postgresql, _proxy)) = behind_a_proxy_in(schema.clone()).await else { return };
    let store = postgresql.store();
    store.catalog.create(resource("users", 2)).await.expect("created");
    let created = store.catalog.create(subscription("s", "users")).await.expect("created");
    let feeds = [feed(&created, 0), feed(&created, 1)];
    let epoch = store.ledger.next_epoch().await.expect("an epoch");
    store.ledger.open(&feeds, epoch).await.expect("opened");
    let (opening, _tasks) = stranger(&schema).await;
    let lock = "SELECT id FROM feeds WHERE id = $1 FOR NO KEY UPDATE";
    opening.batch_execute("BEGIN; SET LOCAL lock_timeout = '500ms'").await.expect("begun");
    opening.query_one(lock, &[&(feeds[0].packed() as i64)]).await.expect("the first");
    let mut writing = tokio::task::JoinSet::new();
    let record = |feed| FeedWrite { feed, epoch, record: Record { cursor: Seq(1), ..Record::default() } };
    let (ledger, writes) = (store.ledger.clone(), vec![record(feeds[1]), record(feeds[0])]);
    writing.spawn(async move { ledger.write(writes).await });
    let (looking, _more) = stranger(&schema).await;
    let waits =
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE feeds%'";
    while looking.query_one(waits, &[]).await.expect("read").get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    opening.query_one(lock, &[&(feeds[1].packed() as i64)]).await.expect("the second, which nobody holds");
    opening.batch_execute("COMMIT").await.expect("opened");
    let written = writing.join_next().await.expect("it runs").expect("it does not panic").expect("written");
    assert!(written.iter().all(Result::is_ok));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_write_alone_the_older_one_is_told_to_end() {
    let Some(server) = common::server() else { return };
    let told = Arc::new(AtomicBool::new(false));
    let ended = told.clone();
    let mut options = Options::new(&server.url);
    (options.schema, options.connections, options.alone) = (common::fresh_schema(), 6, true);
    let newer = options.clone();
    options.fatal = Arc::new(move |error| {
        assert_eq!(error.kind, ErrorKind::Fenced, "{error}");
        ended.store(true, Ordering::SeqCst);
    });
    let open = |options| tokio::task::block_in_place(|| Postgresql::open(options)).expect("it is there");
    let one = open(options);
    let lane = lane(&one.store().catalog.create(resource("users", 1)).await.expect("created"), 0);
    outcomes(&one.store(), put(lane, "http://h/1", 1)).await.expect("it is alone");
    let other = open(newer);
    let refused = outcomes(&one.store(), put(lane, "http://h/1", 2)).await.expect_err("it is not alone");
    assert_eq!(refused.kind, ErrorKind::Fenced, "{refused}");
    assert!(told.load(Ordering::SeqCst));
    assert_eq!(outcomes(&other.store(), put(lane, "http://h/1", 2)).await.expect("taken"), Outcome::Updated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_that_bring_a_schema_to_its_shape_at_once_all_succeed() {
    let Some(server) = common::server() else { return };
    let mut options = Options::new(&server.url);
    (options.schema, options.connections) = (common::fresh_schema(), 6);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let options = options.clone();
            std::thread::spawn(move || Postgresql::open(options))
        })
        .collect();
    let mut incarnations: Vec<u64> = Vec::new();
    for thread in threads {
        let store = thread.join().expect("it ends").expect("it opens");
        incarnations.push(store.store().documents.incarnation().await.expect("answered"));
    }
    incarnations.dedup();
    assert_eq!(incarnations.len(), 1, "they are all on one log");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_may_be_split_into_partitions() {
    let Some(server) = common::server() else { return };
    let mut options = Options::new(&server.url);
    (options.schema, options.connections) = (common::fresh_schema(), 6);
    let open = || tokio::task::block_in_place(|| Postgresql::open(options.clone())).expect("it is there");
    let before = open();
    let store = before.store();
    let users = store.catalog.create(resource("users", 8)).await.expect("created");
    let put_all = async |store: &Store, revision| {
        for number in 0..40 {
            let write = put(lane(&users, number % 8), &format!("http://h/{number}"), revision);
            outcomes(store, write).await.expect("taken");
        }
    };
    put_all(&store, 1).await;
    before.close();
    let (client, connection) =
        tokio_postgres::connect(&server.url, tokio_postgres::NoTls).await.expect("it is there");
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(connection);
    client.batch_execute(&format!("SET search_path = {}", options.schema)).await.expect("set");
    let split = include_str!("../../../deploy/postgresql/partition-documents.sql");
    client.batch_execute(split).await.expect("it is split");

    let after = open();
    let store = after.store();
    put_all(&store, 2).await;
    let lanes = store.documents.lanes().await.expect("read");
    assert!(lanes.iter().all(|lane| (lane.documents, lane.head) == (5, Seq(10))), "{lanes:?}");
    let orders = store.catalog.create(resource("orders", 8)).await.expect("created");
    for index in 0..8 {
        let url = format!("http://h/orders/{index}");
        outcomes(&store, put(lane(&orders, index), &url, 1)).await.expect("taken");
    }
    assert!(store.catalog.delete(EntityKind::Resource, "users").await.expect("deleted"));
    let left = "SELECT count(*) FROM documents";
    for _ in 0..400 {
        if client.query_one(left, &[]).await.expect("read").get::<_, i64>(0) == 8 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(
        client.query_one(left, &[]).await.expect("read").get::<_, i64>(0),
        8,
        "those of the other stay"
    );
}

/// Whoever owned feeds of the old log writes no more of them, and whoever opens them believes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_timeline_is_another_log_where_a_failover_may_lose_something() {
    let Some(server) = common::own_server() else { return };
    let own = server.own.as_ref().expect("it is our own");
    let told = Arc::new(AtomicBool::new(false));
    let ended = told.clone();
    let mut options = Options::new(&server.url);
    (options.connections, options.lossy_failover) = (6, true);
    options.fatal = Arc::new(move |error| {
        assert!(error.to_string().contains("timeline"), "{error}");
        ended.store(true, Ordering::SeqCst);
    });
    let open = || tokio::task::block_in_place(|| Postgresql::open(options.clone())).expect("it is there");
    let one = open();
    let store = one.store();
    store.catalog.create(resource("users", 1)).await.expect("created");
    let feed = feed(&store.catalog.create(subscription("s", "users")).await.expect("created"), 0);
    let epoch = store.ledger.next_epoch().await.expect("given");
    store.ledger.open(&[feed], epoch).await.expect("opened");
    let before = store.documents.incarnation().await.expect("answered");

    tokio::task::block_in_place(|| {
        own.stop();
        own.start();
    });
    let still = loop {
        if let Ok(incarnation) = store.documents.incarnation().await {
            break incarnation;
        }
    };
    assert_eq!(still, before, "a restart is the same log");
    assert!(!told.load(Ordering::SeqCst));

    tokio::task::block_in_place(|| {
        own.stop();
        own.become_standby();
        own.start();
    });
    let (client, connection) =
        tokio_postgres::connect(&server.url, tokio_postgres::NoTls).await.expect("it is there");
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(connection);
    assert!(!told.load(Ordering::SeqCst), "it is waited for until it has taken over");
    client.query_one("SELECT pg_promote(true, 60)", &[]).await.expect("promoted");
    while !told.load(Ordering::SeqCst) {
        assert!(store.documents.incarnation().await.is_err(), "nothing is answered from the new log");
    }
    let two = open();
    let store = two.store();
    assert_ne!(store.documents.incarnation().await.expect("answered"), before);
    let late = store.ledger.write(vec![FeedWrite { feed, epoch, record: Record::default() }]).await;
    let late = late.expect("taken").pop().expect("an answer").expect_err("its owner is of the old log");
    assert_eq!(late.kind, ErrorKind::Fenced, "{late}");
    let epoch = store.ledger.next_epoch().await.expect("given");
    assert!(store.ledger.open(&[feed], epoch).await.expect("opened")[0].saved.strange);
}
