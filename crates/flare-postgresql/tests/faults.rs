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
    let server = common::server()?;
    let config: tokio_postgres::Config = server.url.parse().expect("a url");
    let host = match &config.get_hosts()[0] {
        tokio_postgres::config::Host::Tcp(host) => host.clone(),
        other => panic!("the tests need a server over TCP, not {other:?}"),
    };
    let there = format!("{host}:{}", config.get_ports()[0]);
    let proxy = Proxy::before(there.clone()).await;
    let mut options = Options::new(server.url.replace(&there, &proxy.addr().to_string()));
    options.schema = common::fresh_schema();
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
            std::thread::spawn(move || {
                Postgresql::open(options).map(|store| store.store().documents.incarnation())
            })
        })
        .collect();
    let mut incarnations: Vec<u64> =
        threads.into_iter().map(|thread| thread.join().expect("it ends").expect("it opens")).collect();
    incarnations.dedup();
    assert_eq!(incarnations.len(), 1, "they are all on one log");
}
